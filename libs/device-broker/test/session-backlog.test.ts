import type { Bus } from "@devmesh/service-kit/bus";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import { type SampleBroker, startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { bridgeConsumers, mqttStream } from "../src/broker-subjects.ts";
import { pullDeviceMessages } from "../src/device-stream.ts";
import { ensureDeviceConsumer, provisionDeviceStream } from "../src/mqtt-stream.ts";
import { dropSessionBacklog, findMessageHoard } from "../src/session-backlog.ts";

let broker: SampleBroker;
let bus: Bus;
const done = new AbortController();
beforeAll(async () => {
  broker = await startBroker();
  bus = await broker.connect("rpc-bridge.devices");
  await using bridge = await broker.bridge();
  await provisionDeviceStream(bus, { signal: done.signal });
  for (const name of bridgeConsumers) await ensureDeviceConsumer(bus, name);
  await ensureDeviceConsumer(await broker.connect("data.devices"), "data");
  await bridge.leave();
});
afterAll(async () => {
  done.abort();
  await broker.stop();
});

const kilobyte = "x".repeat(1_024);
const bytes = async () => (await (await streamManager(bus)).streams.info(mqttStream)).state.bytes;

/** A session that nobody comes back to, subscribed to all of its device's topics. */
async function leaveSession(id: string): Promise<void> {
  const session = await broker.device(id, { clientId: `${id}:kept`, clean: false });
  await session.subscribe(`${id}/#`, 1);
  await session.leave();
}

test("what waits for kept sessions alone is dropped, of the device that hoards most, when it takes too much room", async () => {
  for (const id of ["hoarder", "modest"]) await leaveSession(id);
  await using hoarder = await broker.device("hoarder");
  await using modest = await broker.device("modest");
  for (let n = 0; n < 5; n++) await modest.publish("modest/note", `${n}`, 1);
  await Promise.all(Array.from({ length: 200 }, () => hoarder.publish("hoarder/note", kilobyte, 1)));
  const held = await bytes();

  expect(await dropSessionBacklog(bus, { maxBytes: held, signal: done.signal })).toEqual([]);
  const dropped = await dropSessionBacklog(bus, { maxBytes: held / 2, signal: done.signal });

  expect(dropped).toEqual([{ deviceId: "hoarder", messages: 200 }]);
  await using back = await broker.device("modest", { clientId: "modest:kept", clean: false });
  await back.awaitMessage(({ payload }) => payload === "4");
});

test("what services have not handled yet is never dropped, however much it is", async () => {
  await leaveSession("hoarder");
  await using hoarder = await broker.device("hoarder");
  await Promise.all(Array.from({ length: 50 }, () => hoarder.publish("hoarder/event/bulk", kilobyte, 1)));
  await Promise.all(Array.from({ length: 50 }, () => hoarder.publish("db/hoarder/bulk", kilobyte, 1)));

  expect(await dropSessionBacklog(bus, { maxBytes: 0, signal: done.signal })).not.toContainEqual(
    expect.objectContaining({ deviceId: "hoarder", messages: 50 }),
  );

  const handled: string[] = [];
  const enough = new AbortController();
  await pullDeviceMessages(
    bus,
    { durable: "rpc-bridge-events", batch: 100, maxWaitMs: 0, signal: enough.signal },
    async (batch) => {
      handled.push(...batch.map(({ subject }) => subject));
      if (handled.length >= 50) enough.abort();
    },
  );
  expect(handled.filter((subject) => subject === "hoarder.event.bulk")).toHaveLength(50);

  expect(await findMessageHoard(bus, 0)).toBe("hoarder");
  expect(await findMessageHoard(bus, 1_000_000)).toBeNull();

  // Handled, and waiting for the session still; the data is not the bridge's.
  const dropped = await dropSessionBacklog(bus, { maxBytes: 0, signal: done.signal });
  expect(dropped).toEqual([{ deviceId: "hoarder", messages: 50 }]);
  const manager = await streamManager(bus);
  const { state } = await manager.streams.info(mqttStream, { subjects_filter: ">" });
  // `data`, which is handed all messages, has not run since the test before.
  expect(state.subjects).toEqual({ "$MQTT.msgs.db.hoarder.bulk": 50, "$MQTT.msgs.modest.note": 5 });
});
