import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { awaitInvitation } from "./outbox.ts";
import { type RestClient, restClient } from "./rest-client.ts";

/** A device with all its keys. */
export interface EnrolledDevice {
  readonly id: string;
  readonly token: string;
  readonly publicKey: string;
  readonly deviceKey: string;
  readonly asDeviceKey: RestClient;
  readonly asPublicKey: RestClient;
  /** Opens an MQTT connection; the caller closes it. */
  connect(clientId?: string): Promise<MqttDevice>;
}

/** Creates a device over REST, with this ACL if given, and a device key. */
export async function enrolDevice(mesh: TestMesh, id: string, acl?: object): Promise<EnrolledDevice> {
  const master = asMaster(mesh);
  const created = await master.post("devices", acl ? { id, acl } : { id });
  if (created.status !== 201) throw new Error(`creating ${id}: ${created.status} ${created.text}`);
  const key = await master.post("keys", { device_id: id });
  if (key.status !== 201) throw new Error(`a key for ${id}: ${key.status} ${key.text}`);
  return {
    id,
    token: created.json.token,
    publicKey: created.json.public_key,
    deviceKey: key.json.key,
    asDeviceKey: restClient(mesh.url, key.json.key),
    asPublicKey: restClient(mesh.url, created.json.public_key),
    connect: (clientId) =>
      connectMqttDevice({
        url: mesh.mqttUrl,
        id,
        token: created.json.token,
        ...(clientId !== undefined && { clientId }),
      }),
  };
}

/** Creates devices, ten at a time: a service on a busy machine need not answer hundreds of requests in their time. */
export async function enrolDevices(mesh: TestMesh, ids: readonly string[]): Promise<EnrolledDevice[]> {
  const atOnce = 10;
  const devices: EnrolledDevice[] = [];
  for (let from = 0; from < ids.length; from += atOnce)
    devices.push(...(await Promise.all(ids.slice(from, from + atOnce).map((id) => enrolDevice(mesh, id)))));
  return devices;
}

/** Registers a customer and reads the token in the mail. */
export async function registerCustomer(mesh: TestMesh, email: string) {
  const answer = await asAnyone(mesh).get(`/newcustomer?email=${encodeURIComponent(email)}`);
  if (answer.status !== 202) throw new Error(`registering ${email}: ${answer.status} ${answer.text}`);
  const invitation = await awaitInvitation(mesh.dataDir, email);
  return { ...invitation, asCustomer: restClient(mesh.url, invitation.token) };
}

/** The REST API with the mesh's first master key. */
export function asMaster(mesh: TestMesh): RestClient {
  return restClient(mesh.url, mesh.masterKey);
}

/** The REST API without a key. */
export function asAnyone(mesh: TestMesh): RestClient {
  return restClient(mesh.url, null);
}
