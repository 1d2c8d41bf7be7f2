import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Bus } from "../src/bus.ts";
import { findRetainedHoard, listRetainedTopics } from "../src/retained-messages.ts";
import { startBroker, type TestBroker } from "./broker.ts";

describe("the retained messages of a device", () => {
  let broker: TestBroker;
  let bus: Bus;
  beforeAll(async () => {
    broker = await startBroker();
    bus = await broker.connect("rpc-bridge.devices");
  });
  afterAll(() => broker.stop());

  test("are none while no device has ever connected", async () => {
    expect(await listRetainedTopics(bus, "pump-1")).toEqual([]);
  });

  test("are listed by their topics, dots and wildcards as MQTT writes them, until they are cleared", async () => {
    await using pump = await broker.device("pump-1");
    const topics = ["db/pump-1/a.b", "pump-1/*/>", "pump-1/shadow/delta", "pump-1/x/y/z"];
    for (const topic of topics) await pump.publish(topic, "1", 1, true);
    await pump.publish("pump-1/fleeting", "1", 1);
    expect([...(await listRetainedTopics(bus, "pump-1"))].sort()).toEqual(topics);
    await using bridge = await broker.bridge();
    for (const topic of topics) await bridge.publish(topic, "", 1, true);
    expect(await listRetainedTopics(bus, "pump-1")).toEqual([]);
  });

  test("of another device whose id begins or ends alike are not among them", async () => {
    for (const id of ["pump-10", "x-pump-1"]) {
      await using other = await broker.device(id);
      await other.publish(`${id}/state`, "1", 1, true);
      await other.publish(`db/${id}/state`, "1", 1, true);
    }
    expect(await listRetainedTopics(bus, "pump-1")).toEqual([]);
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
    expect(await findRetainedHoard(bus, 30_000)).toBe("hoarder");
    expect(await findRetainedHoard(bus, 1_000_000)).toBeNull();
  });
});
