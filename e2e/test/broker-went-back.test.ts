import { cp, mkdtemp, readdir, readFile, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { openEventStream } from "@devmesh/testkit/notification-client";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { asMaster, enrolDevice } from "../src/tenant.ts";

/*
 * After a power cut the broker may go back to what it had synced last, while the services go back less or not at all.
 * It then gives to new messages the sequences of those that it lost.
 */

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "devmesh-went-back-"));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

async function publish(mesh: TestMesh, token: string, phase: string, count: number): Promise<void> {
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
    const dataDir = join(folder, what);
    const copy = join(folder, `copy of ${what}`);
    const first = await startMesh({ dataDir });
    const { token } = await enrolDevice(first, "meter");
    await publish(first, token, "kept", 300);
    await eventually(async () => (await stored(first)).kept === 300);
    await first.stop();
    const messages = await messagesOf(dataDir, stream);
    await cp(messages, copy, { recursive: true });

    const second = await startMesh({ dataDir });
    await publish(second, token, "lost", 500);
    await eventually(async () => (await stored(second)).lost === 500);
    await second.stop();
    await rm(messages, { recursive: true });
    await cp(copy, messages, { recursive: true });
    if (losesConsumers) {
      // As a power cut leaves a file that was created and not synced.
      for (const durable of ["data", "rpc-bridge"])
        await truncate(join(messages, "../obs", durable, "meta.inf"));
    }

    const third = await startMesh({ dataDir });
    try {
      await publish(third, token, "new", 700);
      expect(
        await eventually(
          async () => {
            const counts = await stored(third);
            return counts.new === 700 ? counts : null;
          },
          { everyMs: 250 },
        ),
      ).toEqual({ kept: 300, lost: 500, new: 700 });
      const events = await openEventStream(third.url, "/api/v2/notify?after=0", { key: third.masterKey });
      await eventually(() => JSON.stringify(events.frames).includes('"phase":"new"'));
      events.leave();
      const log = await readFile(join(dataDir, "logs", "data.log"), "utf8");
      // Once for each connection to the broker, never for each batch.
      const reports = log.match(/ends before what is stored of it/g) ?? [];
      expect(reports.length).toBeGreaterThanOrEqual(1);
      expect(reports.length).toBeLessThan(5);
    } finally {
      await third.stop();
    }
  },
  180_000,
);
