import type { Bus } from "@devmesh/service-kit/bus";
import { storeRetained } from "@devmesh/testkit/retained-messages";
import { type SampleBroker, startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { findRetainedHoard, listRetainedTopics } from "../src/retained-messages.ts";

describe("the retained messages of a device", () => {
  let broker: SampleBroker;
  let bus: Bus;
  beforeAll(async () => {
    broker = await startBroker();
    bus = await broker.connect("rpc-bridge.devices");
  });
  afterAll(() => broker.stop());

  test("are none while no device has ever connected", async () => {
    expect(await listRetainedTopics(bus, "pump-1")).toEqual({ topics: [], total: 0 });
  });

  test("are listed by their topics, dots and wildcards as MQTT writes them, until they are cleared", async () => {
    await using pump = await broker.device("pump-1");
    const topics = ["db/pump-1/a.b", "pump-1/*/>", "pump-1/shadow/delta", "pump-1/x/y/z"];
    for (const topic of topics) await pump.publish(topic, "1", 1, true);
    await pump.publish("pump-1/fleeting", "1", 1);
    // Those below `ID/` first.
    const own = topics.filter((topic) => topic.startsWith("pump-1/"));
    const listed = await listRetainedTopics(bus, "pump-1");
    expect({ topics: [...listed.topics].sort(), total: listed.total }).toEqual({ topics: own, total: 3 });
    await using bridge = await broker.bridge();
    for (const topic of own) await bridge.publish(topic, "", 1, true);
    expect(await listRetainedTopics(bus, "pump-1")).toEqual({ topics: ["db/pump-1/a.b"], total: 1 });
    await bridge.publish("db/pump-1/a.b", "", 1, true);
    expect(await listRetainedTopics(bus, "pump-1")).toEqual({ topics: [], total: 0 });
  });

  test("of another device whose id begins or ends alike are not among them", async () => {
    for (const id of ["pump-10", "x-pump-1"]) {
      await using other = await broker.device(id);
      await other.publish(`${id}/state`, "1", 1, true);
      await other.publish(`db/${id}/state`, "1", 1, true);
    }
    expect(await listRetainedTopics(bus, "pump-1")).toEqual({ topics: [], total: 0 });
  });

  test("are not asked for by a name that is no device id", async () => {
    for (const id of ["*", ">", "a.b", ""]) {
      await expect(listRetainedTopics(bus, id)).rejects.toThrow("device id");
    }
  });

  test("are laid to the device that retains most, once they are too much; deltas are not", async () => {
    await using bridge = await broker.bridge();
    await bridge.publish("pump-1/shadow/delta", "x".repeat(10_000), 1, true);
    await using pump = await broker.device("pump-1");
    await pump.publish("pump-1/event/a", "x", 1, true);
    await using hoarder = await broker.device("hoarder");
    for (let n = 0; n < 20; n++) {
      await hoarder.publish(`hoarder/event/${n}`, "x".repeat(1_000), 1, true);
      await hoarder.publish(`db/hoarder/${n}`, "x".repeat(1_000), 1, true);
    }
    expect(await findRetainedHoard(bus, { maxBytes: 30_000, maxMessages: 1_000 })).toBe("hoarder");
    const roomy = { maxBytes: 1_000_000, maxMessages: 1_000 };
    expect(await findRetainedHoard(bus, roomy)).toBeNull();
    expect(await findRetainedHoard(bus, { ...roomy, maxMessages: 30 })).toBe("hoarder");
  });

  test("are listed a page at a time, however many there are", async () => {
    await using hoard = await broker.device("hoard");
    await hoard.publish("db/hoard/one", "1", 1, true);
    const count = 150_000;
    await storeRetained(
      broker.server.port,
      Array.from({ length: count }, (_, n) => `hoard/event/${n}`),
    );
    const { topics, total } = await listRetainedTopics(bus, "hoard");
    expect([new Set(topics).size, total]).toEqual([100_000, count]);
    const few = await listRetainedTopics(bus, "hoard", 1_000);
    expect([few.topics.length, few.total]).toEqual([1_000, count]);
    expect(await findRetainedHoard(bus, { maxBytes: 1e12, maxMessages: 10_000 })).toBe("hoard");
  }, 300_000);
});
