import { createLogger } from "@devmesh/service-kit/logger";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Registry } from "prom-client";
import { Background } from "../src/background.ts";
import { startThrottling, type ThrottleDevice } from "../src/presence/device-throttle.ts";
import { TrafficMeter } from "../src/presence/traffic-meter.ts";
import { FakeBroker } from "./fake-broker.ts";

const limits = { messagesPerSecond: 100, bytesPerSecond: 10_000 };

describe("the meter of what devices send", () => {
  const connection = (
    deviceId: string,
    connectionId: number,
    messages: number,
    bytes = 0,
    serverId = "S1",
  ) => ({
    deviceId,
    serverId,
    connectionId,
    mqttClientId: deviceId,
    address: "10.0.0.1",
    acceptedMs: 0,
    listedMs: 1,
    received: { messages, bytes },
  });
  const servers = new Map([
    ["S1", "one"],
    ["S2", "two"],
  ]);

  test("finds a device that sends more than the burst over all its connections, and no other", () => {
    const meter = new TrafficMeter(limits);
    expect(meter.take({ servers, connections: [] }, 0)).toEqual([]);
    const connections = [
      connection("a", 1, 600),
      connection("a", 2, 601, 0, "S2"),
      connection("b", 3, 1_100),
    ];
    expect(meter.take({ servers, connections }, 2_000)).toEqual([{ deviceId: "a", why: "messages" }]);
  });

  test("finds one that sends too many bytes", () => {
    const meter = new TrafficMeter(limits);
    meter.take({ servers, connections: [] }, 0);
    const connections = [connection("a", 1, 1, 120_001)];
    expect(meter.take({ servers, connections }, 2_000)).toEqual([{ deviceId: "a", why: "bytes" }]);
  });

  test("finds one that sends a little too much for long, and not one that stays at its rate", () => {
    const meter = new TrafficMeter(limits);
    meter.take({ servers, connections: [] }, 0);
    const found = Array.from({ length: 100 }, (_, n) => {
      const connections = [connection("at", 1, (n + 1) * 200), connection("over", 2, (n + 1) * 220)];
      return meter.take({ servers, connections }, (n + 1) * 2_000);
    });
    expect(found.flat()[0]).toEqual({ deviceId: "over", why: "messages" });
    expect(found.flat().filter(({ deviceId }) => deviceId === "at")).toEqual([]);
  });

  test("does not count what was sent before it began, nor twice what a server did not list for a while", () => {
    const meter = new TrafficMeter(limits);
    const connections = [connection("a", 1, 1_000_000)];
    expect(meter.take({ servers, connections }, 0)).toEqual([]);
    expect(meter.take({ servers: new Map([["S2", "two"]]), connections: [] }, 2_000)).toEqual([]);
    expect(meter.take({ servers, connections: [connection("a", 1, 1_000_100)] }, 4_000)).toEqual([]);
  });
});

describe("a device that does too much", () => {
  let clock: ManualClock;
  let broker: FakeBroker;
  let stopping: AbortController;
  let throttle: ThrottleDevice;
  const published: { id: string; why: string; refused_ms: number }[] = [];

  beforeEach(() => {
    clock = new ManualClock();
    broker = new FakeBroker(clock);
    stopping = new AbortController();
    published.length = 0;
    const log = createLogger({ service: "test", level: "silent" });
    throttle = startThrottling({
      connections: broker,
      events: { throttled: async (id, throttling) => void published.push({ id, ...throttling }) },
      limits,
      registry: new Registry(),
      background: new Background({ clock, signal: stopping.signal, log }),
      clock,
      log,
    });
  });
  afterEach(() => stopping.abort());

  test("has its connections closed, after the event that refuses its logins, and nobody else's", async () => {
    const [own] = [broker.login("a"), broker.login("b")];
    let publishedBefore = 0;
    broker.whileListing = () => {
      publishedBefore = published.length;
    };
    throttle("a", "storage");
    await eventually(() => broker.closed.length > 0);
    expect(broker.closed).toEqual([own]);
    expect(publishedBefore).toBe(1);
    expect(published).toEqual([{ id: "a", why: "storage", refused_ms: 10_000 }]);
  });

  test("is refused for longer each time, up to ten minutes, and as at first after a quiet hour", async () => {
    const refusals: number[] = [];
    for (let n = 0; n < 8; n++) {
      throttle("a", "messages");
      // Refused already: nothing more happens.
      throttle("a", "messages");
      await eventually(() => published.length === n + 1);
      refusals.push((published[n]?.refused_ms ?? 0) / 1_000);
      await clock.advance(published[n]?.refused_ms ?? 0);
    }
    expect(refusals).toEqual([10, 20, 40, 80, 160, 320, 600, 600]);
    await clock.advance(3_600_000);
    throttle("a", "messages");
    await eventually(() => published.length === 9);
    expect(published[8]?.refused_ms).toBe(10_000);
  });
});
