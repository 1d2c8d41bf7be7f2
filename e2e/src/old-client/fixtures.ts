import { createHash } from "node:crypto";
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
  /** `customer_id` of one that stays, `former_customer_id` of one to delete, `ticket` of a download, `alert_id`. */
  readonly madeUp: MadeUp;
}

/**
 * Sets up a mesh over its public interfaces: the device `old-lamp` is connected, answers calls and has published two
 * records; `old-shed` was never connected; `old-board` was offered firmware and does not fetch it; a login as
 * `old-stranger` was refused; an alert fires for `old-shed`; two customers were invited, and the mail to a third was
 * rejected. The broker keeps only 4 MB of device messages, so that a test can fill it.
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
  const board = opened.adopt(await (await enrolDevice(mesh, "old-board")).connect(), (device) =>
    device.leave(),
  );
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
  const ticket = await ticketOf(mesh, board);
  const toStay = opened.move();
  return {
    mesh,
    mail,
    madeUp: new Map([
      ["customer_id", customerIds.get("kim") ?? ""],
      ["former_customer_id", customerIds.get("former") ?? ""],
      ["ticket", ticket],
      ["alert_id", await alertOf(mesh)],
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

/** The alert of a rule on devices that are away. */
async function alertOf(mesh: TestMesh): Promise<string> {
  const master = asMaster(mesh);
  const when = { kind: "offline", longer_than: "PT10S" };
  await master.post("rules", { name: "away", where: { text: { all: ["old-shed"] } }, when });
  return await eventually(async () => (await master.get("alerts?device_id=old-shed")).json?.[0]?.id);
}

/** The ticket by which the device can fetch firmware of a job that goes on. */
async function ticketOf(mesh: TestMesh, board: MqttDevice): Promise<string> {
  const master = asMaster(mesh);
  const content = Buffer.from("old firmware");
  const sha256 = createHash("sha256").update(content).digest("hex");
  const file = { name: "old-board", version: "2.0.0", size: content.length, sha256 };
  const { id } = (await master.post("firmware", file)).json;
  await master.post(`firmware/${id}/content`, content);
  await board.subscribe("old-board/shadow/delta", 1);
  const action = { kind: "firmware", firmware_id: id, via: "shadow" };
  await master.post("jobs", { target: { ids: ["old-board"] }, action });
  const { payload } = await board.awaitMessage((message) => message.payload.includes('"url"'));
  return JSON.parse(payload).state.ota.url.split("/").at(-1);
}
