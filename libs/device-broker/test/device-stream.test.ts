import type { Bus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import { eventually } from "@devmesh/testkit/eventually";
import { type SampleBroker, startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { mqttStream } from "../src/broker-subjects.ts";
import { type DeviceMessage, pullDeviceMessages } from "../src/device-stream.ts";
import { ensureDeviceConsumer, provisionDeviceStream } from "../src/mqtt-stream.ts";
import { subscribeDeviceTopics, type TransientDeviceMessage } from "../src/transient-device-messages.ts";

const text = (payload: Uint8Array) => Buffer.from(payload).toString();

describe("messages of devices", () => {
  let broker: SampleBroker;
  let data: Bus;
  let bridge: Bus;
  let done: AbortController;
  beforeAll(async () => {
    broker = await startBroker();
    data = await broker.connect("data.devices");
    bridge = await broker.connect("rpc-bridge.devices");
    done = new AbortController();
    const provisioned = provisionDeviceStream(bridge, { maxBytes: 10_000_000, signal: done.signal });
    // The stream is made by the first login, which is the bridge's own.
    await broker.bridge();
    await provisioned;
    await ensureDeviceConsumer(await broker.connect("data.devices"), "data");
  });
  beforeEach(() => {
    done = new AbortController();
  });
  afterAll(() => broker.stop());

  const pull = (
    handle: (messages: readonly DeviceMessage[]) => Promise<void>,
    batch = 100,
    maxWaitMs = 20,
    maxBytes = 32_000_000,
  ) => pullDeviceMessages(data, { durable: "data", batch, maxBytes, maxWaitMs, signal: done.signal }, handle);

  test("arrive once each, in order, named by the stream's age and their sequence", async () => {
    await using pump = await broker.device("pump-1");
    const seen: DeviceMessage[] = [];
    const pulling = pull(async (messages) => void seen.push(...messages));
    for (let count = 0; count < 20; count++)
      await pump.publish("db/pump-1/a.b/temp", String(count), count % 2 === 0 ? 1 : 2);
    await eventually(() => seen.length === 20);
    expect(seen.map(({ payload }) => text(payload))).toEqual(
      Array.from({ length: 20 }, (_, count) => String(count)),
    );
    expect(seen[0]).toMatchObject({
      subject: "db.pump-1.a//b.temp",
      topicLevels: ["db", "pump-1", "a.b", "temp"],
      redelivered: false,
    });
    expect(new Set(seen.map(({ streamCreated, sequence }) => `${streamCreated}/${sequence}`)).size).toBe(20);
    expect(Date.parse(seen[0]?.streamCreated ?? "")).not.toBeNaN();
    expect(Math.abs((seen[0]?.timestamp.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
    done.abort();
    await pulling;
  });

  test("that are no records are acknowledged by the consumer of records, which hands over none of them", async () => {
    await using pump = await broker.device("pump-1");
    const manager = await streamManager(data);
    const { config } = await manager.consumers.info(mqttStream, "data");
    // As an earlier release has made it.
    await manager.consumers.update(mqttStream, "data", { ...config, filter_subjects: ["$MQTT.msgs.db.>"] });
    await pump.publish("db/pump-1/x", "1", 1);
    await pump.publish("pump-1/shadow/update", "{}", 1);
    await ensureDeviceConsumer(data, "data");
    await pump.publish("pump-1/shadow/update", "{}", 1);
    await pump.publish("db/pump-1/x", "2", 1);
    const seen: DeviceMessage[] = [];
    const pulling = pull(async (messages) => void seen.push(...messages));
    await eventually(async () => {
      const { num_pending, num_ack_pending } = await manager.consumers.info(mqttStream, "data");
      return seen.length === 2 && num_pending + num_ack_pending === 0;
    });
    expect(seen.map(({ topicLevels, payload }) => [topicLevels[0], text(payload)])).toEqual([
      ["db", "1"],
      ["db", "2"],
    ]);
    done.abort();
    await pulling;
  });

  test("are no longer pulled after the end, though the preparation does not", async () => {
    const preparing = Promise.withResolvers<void>();
    const options = { durable: "data", batch: 1, maxWaitMs: 0, signal: done.signal } as const;
    const lastStored = async () => {
      preparing.resolve();
      return new Promise<number | null>(() => undefined);
    };
    const pulling = pullDeviceMessages(data, { ...options, lastStored }, async () => undefined);
    await preparing.promise;
    done.abort();
    await pulling;
  });

  test("are handed over one batch at a time, none larger than asked for", async () => {
    await using pump = await broker.device("pump-1");
    await Promise.all(
      Array.from({ length: 50 }, (_, count) => pump.publish("db/pump-1/x", String(count), 1)),
    );
    let running = 0;
    let most = 0;
    const sizes: number[] = [];
    const pulling = pull(async (messages) => {
      running++;
      most = Math.max(most, running);
      sizes.push(messages.length);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
    }, 8);
    await eventually(() => sizes.reduce((sum, size) => sum + size, 0) === 50);
    expect(most).toBe(1);
    expect(Math.max(...sizes)).toBe(8);
    done.abort();
    await pulling;
  });

  test("of the next batch are pulled while a full one is handled, and come after it where that fails", async () => {
    await using pump = await broker.device("pump-1");
    for (let count = 0; count < 6; count++) await pump.publish("db/pump-1/x", String(count), 1);
    const manager = await streamManager(data);
    const seen: string[][] = [];
    const pulling = pull(async (messages) => {
      seen.push(messages.map(({ payload }) => text(payload)));
      if (seen.length > 2) return;
      await eventually(async () => (await manager.consumers.info(mqttStream, "data")).num_ack_pending === 4);
      if (seen.length === 1) throw new Error("cannot be stored yet");
    }, 2);
    await eventually(() => seen.length === 4);
    expect(seen).toEqual([
      ["0", "1"],
      ["0", "1"],
      ["2", "3"],
      ["4", "5"],
    ]);
    done.abort();
    await pulling;
  });

  test("that are large come in batches of bounded weight, all of them", async () => {
    await using pump = await broker.device("pump-1");
    const payload = "x".repeat(250_000);
    for (let count = 0; count < 20; count++) await pump.publish("db/pump-1/x", payload, 1);
    const weights: number[] = [];
    const pulling = pull(
      async (messages) => void weights.push(messages.reduce((sum, { payload }) => sum + payload.length, 0)),
      100,
      20,
      2_000_000,
    );
    await eventually(() => weights.reduce((sum, weight) => sum + weight, 0) === 5_000_000);
    expect(Math.max(...weights)).toBeLessThanOrEqual(2_000_000);
    done.abort();
    await pulling;
  });

  test("of a batch that was not handled come again, marked as such", async () => {
    await using pump = await broker.device("pump-1");
    await pump.publish("db/pump-1/x", "again", 1);
    const tries: boolean[] = [];
    const pulling = pull(async ([message]) => {
      tries.push(message?.redelivered ?? false);
      if (tries.length < 3) throw new Error("the store is away");
    });
    await eventually(() => tries.length === 3);
    expect(tries).toEqual([false, true, true]);
    done.abort();
    await pulling;
  });

  test("being handled when the pulling ends are acknowledged, not repeated", async () => {
    await using pump = await broker.device("pump-1");
    await pump.publish("db/pump-1/x", "last", 1);
    const begun = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const pulling = pull(async () => {
      begun.resolve();
      await go.promise;
    });
    await begun.promise;
    done.abort();
    go.resolve();
    await pulling;
    done = new AbortController();
    const seen: string[] = [];
    const again = pull(async (messages) => void seen.push(...messages.map(({ payload }) => text(payload))));
    await pump.publish("db/pump-1/x", "next", 1);
    await eventually(() => seen.length > 0);
    expect(seen).toEqual(["next"]);
    done.abort();
    await again;
  });

  test("with a wildcard for a level are dropped, and block nothing", async () => {
    await using pump = await broker.device("pump-1");
    const seen: string[] = [];
    const pulling = pull(async (messages) => void seen.push(...messages.map(({ subject }) => subject)));
    await pump.publish("db/pump-1/*", "bad", 1);
    await pump.publish("db/pump-1/>", "bad", 1);
    await pump.publish("db/pump-1/good", "1", 1);
    await eventually(() => seen.includes("db.pump-1.good"));
    expect(seen).toEqual(["db.pump-1.good"]);
    done.abort();
    await pulling;
  });

  test("at QoS 0 are heard by one of the replicas; what has another QoS is not heard there", async () => {
    await using pump = await broker.device("pump-1");
    const other = await broker.connect("data.devices");
    const seen: TransientDeviceMessage[] = [];
    const listening = [data, other].map((bus) =>
      subscribeDeviceTopics(bus, "db.>", "data", (message) => void seen.push(message)),
    );
    await Promise.all([data.flush(), other.flush()]);
    await pump.publish("db/pump-1/a.b", "stored", 1);
    await pump.publish("db/pump-1/a.b", "1", 0);
    await pump.publish("db/pump-1/a.b", "2", 0);
    await eventually(() => seen.some(({ payload }) => text(payload) === "2"));
    expect(seen.map(({ payload }) => text(payload)).sort()).toEqual(["1", "2"]);
    expect(seen[0]?.topicLevels).toEqual(["db", "pump-1", "a.b"]);
    await Promise.all(listening.map((one) => one.stop()));
    // Left over for the durable consumer.
    const pulling = pull(async () => done.abort());
    await pulling;
  });

  test("acknowledged before a kill of the broker arrive after it, without anybody's doing", async () => {
    const seen: string[] = [];
    const gate = Promise.withResolvers<void>();
    const pulling = pull(async (messages) => {
      await gate.promise;
      seen.push(...messages.map(({ payload }) => text(payload)));
    }, 5);
    const pump = await broker.device("pump-1");
    for (let count = 0; count < 30; count++) await pump.publish("db/pump-1/x", `kill-${count}`, 1);
    await broker.server.kill();
    gate.resolve();
    await broker.server.restart();
    await eventually(() => new Set(seen).size >= 30);
    expect([...new Set(seen)].sort()).toEqual(
      Array.from({ length: 30 }, (_, count) => `kill-${count}`).sort(),
    );
    done.abort();
    await pulling;
  });
});

describe("two replicas that pull the same messages", () => {
  let broker: SampleBroker;
  let provisioner: Bus;
  let feeder: AbortController;
  beforeAll(async () => {
    broker = await startBroker();
    provisioner = await broker.connect("rpc-bridge.devices");
    feeder = new AbortController();
    const provisioned = provisionDeviceStream(provisioner, { maxBytes: 10_000_000, signal: feeder.signal });
    await broker.bridge();
    await provisioned;
    await ensureDeviceConsumer(await broker.connect("data.devices"), "data");
  });
  afterAll(() => broker.stop());

  interface PullingReplica {
    readonly bus: Bus;
    readonly seen: string[];
    stop(): Promise<void>;
    /** Keeps what it was given and says nothing any more, as a process that was killed. */
    die(): Promise<void>;
  }

  async function startPulling(
    before: (message: string) => Promise<void> = async () => undefined,
  ): Promise<PullingReplica> {
    const bus = await broker.connect("data.devices");
    const seen: string[] = [];
    const life = new AbortController();
    const options = {
      durable: "data",
      batch: 10,
      maxWaitMs: 0,
      signal: life.signal,
    } as const;
    const pulling = pullDeviceMessages(bus, options, async (messages) => {
      for (const { payload } of messages) await before(text(payload));
      seen.push(...messages.map(({ payload }) => text(payload)));
    });
    return {
      bus,
      seen,
      async stop() {
        life.abort();
        await pulling;
        await bus.close();
      },
      async die() {
        await bus[natsConnection].close();
        life.abort();
      },
    };
  }

  test("do not share them: one gets all, and the other takes over at once when that one leaves", async () => {
    const replicas = [await startPulling(), await startPulling()];
    await using pump = await broker.device("pump-1");
    for (let count = 0; count < 40; count++) await pump.publish("db/pump-1/x", String(count), 1);
    await eventually(() => replicas.some(({ seen }) => seen.length === 40));
    expect(replicas.map(({ seen }) => seen.length).sort()).toEqual([0, 40]);
    const [other, first] = replicas.sort((a, b) => a.seen.length - b.seen.length);
    await first?.stop();
    for (let count = 40; count < 50; count++) await pump.publish("db/pump-1/x", String(count), 1);
    await eventually(() => other?.seen.length === 10, { withinMs: 4_000 });
    expect(other?.seen).toEqual(Array.from({ length: 10 }, (_, count) => String(count + 40)));
    await other?.stop();
  });

  test("stay as they are while the one is long at work with a batch", async () => {
    let go: () => void = () => undefined;
    const going = new Promise<void>((resolve) => {
      go = resolve;
    });
    const slow = await startPulling(() => going);
    await using pump = await broker.device("pump-1");
    await pump.publish("db/pump-1/x", "first", 1);
    await eventually(async () => (await deviceBacklogOut(provisioner)) === 1);
    const other = await startPulling();
    await pump.publish("db/pump-1/x", "second", 1);
    // Longer than the broker waits for a replica that says nothing.
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    expect(other.seen).toEqual([]);
    go();
    await eventually(() => slow.seen.length === 2);
    expect(slow.seen).toEqual(["first", "second"]);
    await slow.stop();
    await other.stop();
  });

  test("keep the order when one gives back what it could not handle, and leaves", async () => {
    let fail = true;
    const failing = await startPulling(async () => {
      if (fail) throw new Error("the store is away");
    });
    await using pump = await broker.device("pump-1");
    const numbers = Array.from({ length: 35 }, (_, count) => String(count));
    await Promise.all(numbers.map((number) => pump.publish("db/pump-1/x", number, 1)));
    await eventually(async () => (await deviceBacklogOut(provisioner)) > 0);
    const heir = await startPulling();
    await failing.stop();
    await eventually(() => heir.seen.length === numbers.length);
    expect(heir.seen).toEqual(numbers);
    await heir.stop();
    fail = false;
  });

  test("keep the order over the death of one", async () => {
    let taken = 0;
    let end: () => void = () => undefined;
    const dying = await startPulling(async () => {
      taken++;
      await new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await using pump = await broker.device("pump-1");
    await pump.publish("db/pump-1/x", "old", 1);
    await eventually(() => taken === 1);
    const heir = await startPulling();
    await dying.die();
    await pump.publish("db/pump-1/x", "new", 1);
    await eventually(() => heir.seen.length === 2, { withinMs: 40_000 });
    expect(heir.seen).toEqual(["old", "new"]);
    end();
    await heir.stop();
  });
});

/** How many messages are handed out and not acknowledged. */
async function deviceBacklogOut(bus: Bus): Promise<number> {
  const manager = await streamManager(bus);
  return (await manager.consumers.info(mqttStream, "data")).num_ack_pending;
}
