import { createLogger } from "@devmesh/service-kit/logger";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Registry } from "prom-client";
import { Background } from "../src/background.ts";
import { createDeviceThrottle, type DeviceThrottle } from "../src/throttle/device-throttle.ts";
import { TrafficMeter } from "../src/throttle/traffic-meter.ts";
import { FakeBroker } from "./fake-broker.ts";

const limits = { messagesPerSecond: 100, bytesPerSecond: 10_000 };

const servers = new Map([
  ["S1", "one"],
  ["S2", "two"],
]);

interface Sent {
  readonly messages?: number;
  readonly bytes?: number;
  readonly serverId?: string;
  /** How long the connection has been open. */
  readonly openMs?: number;
  readonly idleMs?: number;
}

function open(deviceId: string, connectionId: number, sent: Sent = {}) {
  const { messages = 0, bytes = 0, serverId = "S1", openMs = 1_000, idleMs = 0 } = sent;
  return {
    deviceId,
    serverId,
    connectionId,
    mqttClientId: deviceId,
    address: "10.0.0.1",
    acceptedMs: 0,
    listedMs: openMs,
    idleMs,
    received: { messages, bytes },
  };
}

function ended(deviceId: string, connectionId: number, sent: Sent = {}) {
  const {
    acceptedMs: _accepted,
    listedMs: openMs,
    idleMs: _idle,
    ...connection
  } = open(deviceId, connectionId, sent);
  return { ...connection, openMs, at: new Date(0), reason: "client_closed" };
}

/** Of connections of which the others have been idle for long. */
function busiest(...connections: ReturnType<typeof open>[]) {
  return {
    othersIdleMs: new Map([...servers.keys()].map((id) => [id, Number.POSITIVE_INFINITY])),
    connections,
  };
}

describe("the meter of what devices send", () => {
  function started(now = 0): TrafficMeter {
    const meter = new TrafficMeter(limits);
    expect(meter.takeAll({ servers, connections: [] }, now)).toEqual([]);
    return meter;
  }

  test("finds a device that sends more than the burst over all its connections, and no other", () => {
    const meter = started();
    const connections = [
      open("a", 1, { messages: 600 }),
      open("a", 2, { messages: 601, serverId: "S2" }),
      open("b", 3, { messages: 1_100 }),
    ];
    expect(meter.takeBusiest(busiest(...connections), 2_000)).toEqual([{ deviceId: "a", why: "messages" }]);
  });

  test("finds one that sends too many bytes", () => {
    const found = started().takeBusiest(busiest(open("a", 1, { messages: 1, bytes: 120_001 })), 2_000);
    expect(found).toEqual([{ deviceId: "a", why: "bytes" }]);
  });

  test("finds one that sends a little too much for long, and not one that stays at its rate", () => {
    const meter = started();
    const found = Array.from({ length: 100 }, (_, n) => {
      const connections = [
        open("at", 1, { messages: (n + 1) * 200 }),
        open("over", 2, { messages: (n + 1) * 220 }),
      ];
      return meter.takeBusiest(busiest(...connections), (n + 1) * 2_000);
    });
    expect(found.flat()[0]).toEqual({ deviceId: "over", why: "messages" });
    expect(found.flat().filter(({ deviceId }) => deviceId === "at")).toEqual([]);
  });

  test("counts connections that ended and that no listing had", () => {
    const meter = started();
    const found = Array.from({ length: 12 }, (_, n) =>
      meter.takeEnded(ended("a", n, { messages: 100, openMs: 10 }), 10 * (n + 1)),
    );
    expect(found.flat()).toEqual([{ deviceId: "a", why: "messages" }]);
    expect(found.slice(0, 10).flat()).toEqual([]);
  });

  test("counts of an ended connection what no listing had seen of it", () => {
    const meter = started();
    expect(meter.takeBusiest(busiest(open("a", 1, { messages: 600 })), 100)).toEqual([]);
    expect(meter.takeEnded(ended("a", 1, { messages: 1_000 }), 100)).toEqual([]);
    expect(meter.takeEnded(ended("a", 2, { messages: 20, openMs: 1 }), 100)).toEqual([
      { deviceId: "a", why: "messages" },
    ]);
  });

  test("counts nothing twice of a listing that was made before an end or a newer listing and comes after it", () => {
    const meter = started();
    meter.takeEnded(ended("a", 1, { messages: 700, openMs: 200 }), 200);
    expect(meter.takeBusiest(busiest(open("a", 1, { messages: 600 })), 100)).toEqual([]);
    meter.takeBusiest(busiest(open("b", 2, { messages: 700 })), 200);
    expect(meter.takeAll({ servers, connections: [open("b", 2, { messages: 500 })] }, 100)).toEqual([]);
    expect(meter.takeBusiest(busiest(open("b", 2, { messages: 900 })), 300)).toEqual([]);
  });

  test("lets a connection that was sending before it began go on at its rate", () => {
    const meter = new TrafficMeter(limits);
    const since = { openMs: 10_000_000 };
    const listing = (messages: number, n: number) =>
      [{ servers, connections: [open("a", 1, { messages, ...since })] }, n] as const;
    expect(meter.takeAll(...listing(1_000_000, 0))).toEqual([]);
    expect(meter.takeAll(...listing(1_000_200, 2_000))).toEqual([]);
  });

  test("does not count twice what a server did not list for a while, and spreads it over that time", () => {
    const meter = started();
    meter.takeAll({ servers, connections: [open("a", 1, { messages: 100 })] }, 1_000);
    const other = new Map([["S2", "two"]]);
    for (let at = 2_000; at <= 60_000; at += 1_000) {
      const connections = [open("a", 2, { messages: at / 50, serverId: "S2" })];
      expect(meter.takeAll({ servers: other, connections }, at)).toEqual([]);
    }
    // At 50 messages a second here and there.
    expect(meter.takeBusiest(busiest(open("a", 1, { messages: 3_100 })), 61_000)).toEqual([]);
  });

  test("gives an idle connection no credit for the time in which no listing had it", () => {
    const meter = started();
    meter.takeAll({ servers, connections: [open("a", 1, { messages: 10 })] }, 1_000);
    for (let at = 1_200; at <= 20_000; at += 200) meter.takeBusiest(busiest(), at);
    expect(meter.takeBusiest(busiest(open("a", 1, { messages: 1_100 })), 20_200)).toEqual([
      { deviceId: "a", why: "messages" },
    ]);
  });

  test("blames no busy device for a sum that grew while others filled the listings", () => {
    const meter = started();
    meter.takeAll({ servers, connections: [open("a", 1, { messages: 0 })] }, 1_000);
    const full = { ...busiest(), othersIdleMs: new Map([["S1", 0]]) };
    for (let at = 1_200; at <= 20_000; at += 200) meter.takeBusiest(full, at);
    expect(meter.takeBusiest(busiest(open("a", 1, { messages: 1_900 })), 20_000)).toEqual([]);
  });

  test("asks for as many connections as are active, and for more than a device can have when a listing is too short", () => {
    const meter = started();
    const active = Array.from({ length: 40 }, (_, n) => open("a", n, { idleMs: 10 }));
    const idle = [open("b", 100, { idleMs: 60_000 })];
    meter.takeBusiest(busiest(...idle), 200);
    expect(meter.pageSize).toBe(32);
    meter.takeBusiest({ othersIdleMs: new Map([["S1", 50]]), connections: active }, 400);
    expect(meter.pageSize).toBe(512);
    meter.takeBusiest({ othersIdleMs: new Map([["S1", 60_000]]), connections: [...active, ...idle] }, 600);
    expect(meter.pageSize).toBe(80);
    // A slow answer: what was active since the last one may be idle for longer than the time between the questions.
    meter.takeBusiest({ othersIdleMs: new Map([["S1", 700]]), connections: active }, 800, 1_300);
    expect(meter.pageSize).toBe(512);
    const joined = new Map([["S3", Number.POSITIVE_INFINITY]]);
    meter.takeBusiest({ othersIdleMs: joined, connections: [] }, 1_400);
    expect(meter.pageSize).toBe(32);
  });
});

describe("a device that does too much", () => {
  let clock: ManualClock;
  let broker: FakeBroker;
  let stopping: AbortController;
  let throttle: DeviceThrottle;
  let whilePublishing: () => void | Promise<void>;
  const published: { id: string; why: string; refused_ms: number }[] = [];

  beforeEach(() => {
    clock = new ManualClock();
    broker = new FakeBroker(clock);
    stopping = new AbortController();
    published.length = 0;
    whilePublishing = () => undefined;
    const log = createLogger({ service: "test", level: "silent" });
    throttle = createDeviceThrottle({
      connections: broker,
      events: {
        async throttled(id, throttling) {
          await whilePublishing();
          published.push({ id, ...throttling });
        },
      },
      limits,
      registry: new Registry(),
      background: new Background({ clock, signal: stopping.signal, log }),
      clock,
      log,
    });
  });
  afterEach(() => stopping.abort());

  test("has its connections closed at once, and again after the event that refuses its logins, and nobody else's", async () => {
    const open = [broker.login("a")];
    broker.login("b");
    whilePublishing = async () => {
      await eventually(() => broker.closed.length === 1);
      // Admitted before the event.
      open.push(broker.login("a"));
    };
    throttle.throttle("a", "storage");
    await eventually(() => broker.closed.length === 2);
    expect(broker.closed).toEqual(open);
    expect(published).toEqual([{ id: "a", why: "storage", refused_ms: 10_000 }]);
  });

  test("is refused for longer each time, up to ten minutes, and as at first after a quiet hour", async () => {
    const refusals: number[] = [];
    for (let n = 0; n < 8; n++) {
      throttle.throttle("a", "messages");
      // Refused already: nothing more happens.
      throttle.throttle("a", "messages");
      await eventually(() => published.length === n + 1);
      refusals.push((published[n]?.refused_ms ?? 0) / 1_000);
      await clock.advance(published[n]?.refused_ms ?? 0);
    }
    expect(refusals).toEqual([10, 20, 40, 80, 160, 320, 600, 600]);
    await clock.advance(3_600_000);
    throttle.throttle("a", "messages");
    await eventually(() => published.length === 9);
    expect(published[8]?.refused_ms).toBe(10_000);
  });
});
