import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { type SmtpSink, startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { asAnyone, asMaster, enrolDevice } from "../tenant.ts";
import type { MadeUp } from "./recording.ts";

/** A mesh in the state of the recorded calls. */
export interface RecordedMesh extends AsyncDisposable {
  readonly mesh: TestMesh;
  readonly mail: SmtpSink;
  /** `customer_id` of one that stays, `former_customer_id` of one that may be deleted. */
  readonly madeUp: MadeUp;
}

/**
 * Sets up a mesh over its public interfaces: the device `old-lamp` is connected, answers calls and has published two
 * records; `old-shed` was never connected; a login as `old-stranger` was refused; two customers were invited, and the
 * mail to a third was rejected. The broker keeps only 4 MB of device messages, so that a test can fill it.
 */
export async function startRecordedMesh(): Promise<RecordedMesh> {
  await using opened = new AsyncDisposableStack();
  const mail = opened.use(await startSmtpSink());
  mail.refuseRecipients((address) => (address === "refused@example.com" ? 550 : null));
  const mesh = opened.adopt(
    await startMesh({ env: { SMTP_URL: mail.url, DEVICE_STREAM_MAX_BYTES: "4000000" } }),
    (started) => started.stop(),
  );
  opened.adopt(await connectedLamp(mesh), (device) => device.leave());
  await enrolDevice(mesh, "old-shed");
  await connectMqttDevice({ url: mesh.mqttUrl, id: "old-stranger", token: "none" }).catch(() => undefined);
  const customerIds = new Map<string, string>();
  for (const name of ["kim", "former", "refused"]) {
    const email = `${name}@example.com`;
    await asAnyone(mesh).get(`/newcustomer?email=${email}`);
    const { json } = await asMaster(mesh).get("customers");
    customerIds.set(name, json.find((customer: { email: string }) => customer.email === email).id);
    if (name !== "refused") await mail.awaitMail(({ to }) => to.includes(email));
  }
  const toStay = opened.move();
  return {
    mesh,
    mail,
    madeUp: new Map([
      ["customer_id", customerIds.get("kim") ?? ""],
      ["former_customer_id", customerIds.get("former") ?? ""],
    ]),
    [Symbol.asyncDispose]: () => toStay.disposeAsync(),
  };
}

async function connectedLamp(mesh: TestMesh): Promise<MqttDevice> {
  const lamp = await enrolDevice(mesh, "old-lamp");
  const device = await lamp.connect();
  await device.answerRpc(({ src, id, method, params }) => {
    switch (method) {
      case "Echo":
        return { result: params ?? null };
      case "Fail":
        return { error: { code: 500, message: "the lamp is broken" } };
      case "Silent":
        return null;
      case "Garbled":
        device.client.publish(`${src}/rpc`, JSON.stringify({ id, error: "just a text" }));
        return null;
      default:
        return { error: { code: 404, message: "no such function" } };
    }
  });
  for (const text of ["21.5", "21.7"]) await device.publish("db/old-lamp/temp/air", text, 1);
  const master = asMaster(mesh);
  await eventually(async () => (await master.get("data")).json?.length === 2);
  await eventually(async () => (await master.get("devices/old-lamp/rpc/Echo")).status === 200);
  return device;
}
