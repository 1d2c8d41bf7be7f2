import { setTimeout as sleep } from "node:timers/promises";
import type { Bus } from "@devmesh/service-kit/bus";
import { createPuller, type PulledMessage } from "@devmesh/service-kit/connection/pull";
import { eventually } from "@devmesh/testkit/eventually";
import { type SampleBroker, startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { gatherAbandonedMessages } from "../src/abandoned-messages.ts";
import { mqttStream, replicaGroup } from "../src/broker-subjects.ts";
import { deviceBacklog, ensureDeviceConsumer, provisionDeviceStream } from "../src/mqtt-stream.ts";

describe("messages that were handed out and not acknowledged", () => {
  let broker: SampleBroker;
  let bus: Bus;
  let life: AbortController;
  beforeAll(async () => {
    broker = await startBroker();
    bus = await broker.connect("data.devices");
  });
  beforeEach(() => {
    life = new AbortController();
  });
  afterAll(() => broker.stop());

  /** Takes messages as a replica does that may die before it acknowledges them. */
  async function take(batch: number): Promise<readonly PulledMessage[]> {
    const puller = createPuller(bus, mqttStream, "data", { pinnedIn: replicaGroup });
    const taken: PulledMessage[] = [];
    // Until the broker has noted that the puller before has left, it delivers nothing.
    await eventually(async () => {
      const { messages } = await puller.pull({ batch: batch - taken.length, expiresMs: 2_000 }, life.signal);
      taken.push(...messages);
      return taken.length === batch;
    });
    await puller.unpin();
    puller.close();
    return taken;
  }

  test("are none before there is a consumer, which has no backlog either", async () => {
    const held = await gatherBehind([]);
    expect(held).toEqual([]);
    await expect(deviceBacklog(bus, "data")).rejects.toThrow();
  });

  test("count as backlog until they are acknowledged, like those that were never handed out", async () => {
    const bridge = await broker.connect("rpc-bridge.devices");
    await broker.bridge();
    await provisionDeviceStream(bridge, { signal: life.signal });
    await ensureDeviceConsumer(bus, "data");
    await using pump = await broker.device("pump-1");
    expect(await deviceBacklog(bus, "data")).toBe(0);
    for (let count = 0; count < 3; count++) await pump.publish("db/pump-1/x", "1", 1);
    expect(await deviceBacklog(bus, "data")).toBe(3);
    const taken = await take(2);
    expect(await deviceBacklog(bus, "data")).toBe(3);
    for (const message of taken) message.acknowledge();
    // The broker counts an acknowledgement a moment after it has read it.
    await eventually(async () => (await deviceBacklog(bus, "data")) === 1);
    for (const message of await take(1)) message.acknowledge();
  });

  test("are waited for until they have been acknowledged by any replica", async () => {
    await using pump = await broker.device("pump-1");
    await pump.publish("db/pump-1/x", "old", 1);
    const [message] = await take(1);
    const order: string[] = [];
    const gathered = gatherBehind([]).then((held) => order.push(`goes on with ${held.length}`));
    // Longer than it waits between two looks: it has seen the message out.
    await sleep(600);
    order.push("acknowledged");
    message?.acknowledge();
    await gathered;
    expect(order).toEqual(["acknowledged", "goes on with 0"]);
  });

  test("come at once when they were given back, and before what is newer", async () => {
    await using pump = await broker.device("pump-1");
    for (const payload of ["first", "second", "third"]) await pump.publish("db/pump-1/x", payload, 1);
    const taken = await take(2);
    const newer = await take(1);
    for (const message of taken) message.reject(0);
    const held = await gatherBehind(newer);
    expect(held.map(({ payload }) => Buffer.from(payload).toString())).toEqual(["first", "second", "third"]);
    for (const message of held) message.acknowledge();
  });

  test("are waited for no longer once the start is given up", async () => {
    await using pump = await broker.device("pump-1");
    await pump.publish("db/pump-1/x", "1", 1);
    const [message] = await take(1);
    const gathered = gatherBehind([]);
    life.abort();
    await gathered;
    await eventually(async () => (await deviceBacklog(bus, "data")) === 1);
    message?.acknowledge();
  });

  /** Gathers as a replica does that has just been given `first`. */
  async function gatherBehind(first: readonly PulledMessage[]): Promise<PulledMessage[]> {
    const puller = createPuller(bus, mqttStream, "data", { pinnedIn: replicaGroup });
    const held = [...first];
    await gatherAbandonedMessages(bus, "data", puller, held, { maxBytes: 32_000_000, signal: life.signal });
    await puller.unpin();
    puller.close();
    return held;
  }
});
