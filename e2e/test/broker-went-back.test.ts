import { cp, readdir, readFile, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { openEventStream } from "@devmesh/testkit/notification-client";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { asMaster, enrolDevice } from "../src/tenant.ts";

/*
 * After a power cut the broker may go back to what it had synced last, while the services go back less or not at all.
 * It then gives to new messages the sequences of those that it lost.
 */

let folder: TempFolder;
let token: string;
/** Data folders as they were when the broker had synced last, and at the power cut. */
let [synced, cut] = ["", ""];
beforeAll(async () => {
  folder = await tempFolder();
  [synced, cut] = [join(folder.path, "synced"), join(folder.path, "cut")];
  await runOn(cut, async (mesh) => {
    ({ token } = await enrolDevice(mesh, "meter"));
    await publish(mesh, "kept", 300);
    await eventually(async () => (await stored(mesh)).kept === 300);
  });
  await cp(cut, synced, { recursive: true });
  await runOn(cut, async (mesh) => {
    await publish(mesh, "lost", 500);
    await eventually(async () => (await stored(mesh)).lost === 500);
  });
}, 180_000);
afterAll(async () => await folder?.remove());

async function runOn(dataDir: string, run: (mesh: TestMesh) => Promise<void>): Promise<void> {
  const mesh = await startMesh({ dataDir, store: "sqlite", broker: "own" });
  try {
    await run(mesh);
  } finally {
    await mesh.stop();
  }
}

async function publish(mesh: TestMesh, phase: string, count: number): Promise<void> {
  const device = await connectMqttDevice({ url: mesh.mqttUrl, id: "meter", token });
  // The first of a phase has the sequence that the first of the lost phase had.
  await device.publish("meter/event/phase", { phase }, 1);
  const numbers = Array.from({ length: count }, (_, number) => number);
  await Promise.all(numbers.map((number) => device.publish("db/meter/n", `${phase} ${number}`, 1)));
  await device.leave();
}

async function stored(mesh: TestMesh): Promise<Record<string, number>> {
  const { text } = await asMaster(mesh).get("data?limit=10000", {
    headers: { accept: "application/x-ndjson" },
  });
  const messages = text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line).message]));
  expect(new Set(messages).size).toBe(messages.length);
  const counts: Record<string, number> = {};
  for (const message of messages) {
    const phase = message.split(" ")[0];
    counts[phase] = (counts[phase] ?? 0) + 1;
  }
  return counts;
}

/** The folder of a stream's messages; of all that JetStream keeps where no stream is named. */
async function messagesOf(dataDir: string, stream?: string): Promise<string> {
  const jetstream = join(dataDir, "jetstream");
  if (stream === undefined) return jetstream;
  const paths = await readdir(jetstream, { recursive: true });
  const found = paths.find((path) => path.endsWith(join(stream, "msgs")));
  if (found === undefined) throw new Error(`${stream} is not below ${jetstream}`);
  return join(jetstream, found);
}

test.each([
  ["all that JetStream keeps", undefined, false],
  ["what devices published, but for what is known of the consumers", "$MQTT_msgs", false],
  ["what devices published, and loses the configuration of the consumers", "$MQTT_msgs", true],
] as const)(
  "a broker that goes back in %s: what it acknowledges from then on is stored, and events are sent",
  async (what, stream, losesConsumers) => {
    const dataDir = join(folder.path, what);
    await cp(cut, dataDir, { recursive: true });
    const messages = await messagesOf(dataDir, stream);
    await rm(messages, { recursive: true });
    await cp(await messagesOf(synced, stream), messages, { recursive: true });
    if (losesConsumers) {
      // As a power cut leaves a file that was created and not synced.
      for (const durable of ["data", "rpc-bridge"])
        await truncate(join(messages, "../obs", durable, "meta.inf"));
    }

    await runOn(dataDir, async (mesh) => {
      await publish(mesh, "new", 700);
      expect(
        await eventually(
          async () => {
            const counts = await stored(mesh);
            return counts.new === 700 ? counts : null;
          },
          { everyMs: 250 },
        ),
      ).toEqual({ kept: 300, lost: 500, new: 700 });
      const events = await openEventStream(mesh.url, "/api/v2/notify?after=0", { key: mesh.masterKey });
      await eventually(() => JSON.stringify(events.frames).includes('"phase":"new"'));
      events.leave();
      const log = await readFile(join(dataDir, "logs", "data.log"), "utf8");
      // Once for each connection to the broker, never for each batch.
      const reports = log.match(/ends before what is stored of it/g) ?? [];
      expect(reports.length).toBeGreaterThanOrEqual(1);
      expect(reports.length).toBeLessThan(5);
    });
  },
  120_000,
);
