import { defineEvent, defineEvents } from "@devmesh/contracts/contract";
import { subscribesTo } from "@devmesh/contracts/topology";
import { eventually } from "@devmesh/testkit/eventually";
import { startBuses, type TestBuses } from "@devmesh/testkit/sample-mesh/buses";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import type { Bus } from "../src/connection/bus.ts";
import { natsConnection } from "../src/connection/nats-connection.ts";
import { streamManager } from "../src/connection/streams.ts";
import { createPublisher, type Publisher } from "../src/events/publisher.ts";
import { type ReceivedEvent, subscribe } from "../src/events/subscription.ts";
import { createCallContext, fromWebhookHeader } from "../src/rpc/context.ts";

const visits = defineEvents({
  service: "greeter",
  events: {
    arrived: defineEvent(z.object({ id: z.string(), at: z.int() }), ({ id }) => id),
    left: defineEvent(z.object({ id: z.string(), note: z.string().optional() }), ({ id }) => id),
    passed: { ...defineEvent(z.object({ id: z.string() }), ({ id }) => id), unacknowledged: true },
  },
});

describe("events", () => {
  let buses: TestBuses;
  let speaking: Bus;
  let publisher: Publisher<typeof visits>;
  beforeAll(async () => {
    buses = await startBuses({ jetstream: true });
    speaking = await buses.connect("greeter");
    publisher = await createPublisher(speaking, visits);
  });
  afterAll(() => buses.stop());

  const arrivals = subscribesTo(visits, ["arrived"]);

  test("reach each replica that listens for itself, and one of those that share", async () => {
    const each: string[] = [];
    const one: string[] = [];
    for (const replica of ["a", "b"]) {
      const bus = await buses.connect("listener");
      subscribe(bus, arrivals, { arrived: ({ id }) => void each.push(`${replica} ${id}`) }, { mode: "each" });
      subscribe(bus, arrivals, { arrived: ({ id }) => void one.push(id) }, { mode: "one" });
      await bus.flush();
    }
    await publisher.arrived({ id: "ada", at: 1 });
    await publisher.left({ id: "ada" });
    await eventually(() => each.length === 2 && one.length === 1);
    expect(each.sort()).toEqual(["a ada", "b ada"]);
  });

  test("carry what they are about and the trace of the call that led to them", async () => {
    const bus = await buses.connect("listener");
    const heard = Promise.withResolvers<ReceivedEvent>();
    subscribe(bus, arrivals, { arrived: (_, event) => heard.resolve(event) }, { mode: "each" });
    await bus.flush();
    const call = createCallContext({ timeoutMs: 30_000 });
    await publisher.arrived({ id: "bob", at: 2 }, { call });
    const event = await heard.promise;
    expect(event).toMatchObject({ name: "arrived", key: "bob", trace: { traceId: call.trace.traceId } });
    expect(event.trace.spanId).not.toBe(call.trace.spanId);
  });

  test("say in a header that a receiver of webhooks caused them, by the call or an option", async () => {
    const bus = await buses.connect("listener");
    const seen: [string, string | undefined][] = [];
    const subscription = bus[natsConnection].subscribe("event.greeter.*.*", {
      callback: (_, { subject, headers }) =>
        void seen.push([
          subject.slice("event.greeter.".length),
          headers?.get(fromWebhookHeader) || undefined,
        ]),
    });
    await bus.flush();
    const call = createCallContext({ timeoutMs: 30_000, fromWebhook: true });
    await publisher.arrived({ id: "a", at: 1 }, { call });
    await publisher.arrived({ id: "b", at: 1 }, { fromWebhook: true });
    await publisher.arrived({ id: "c", at: 1 }, { call: createCallContext({ timeoutMs: 30_000 }) });
    publisher.passed({ id: "d" }, { call });
    publisher.passed({ id: "e" }, { fromWebhook: true });
    publisher.passed({ id: "f" });
    await eventually(() => seen.length === 6);
    subscription.unsubscribe();
    expect(seen).toEqual([
      ["arrived.a", "1"],
      ["arrived.b", "1"],
      ["arrived.c", undefined],
      ["passed.d", "1"],
      ["passed.e", "1"],
      ["passed.f", undefined],
    ]);
  });

  test("are stored when the publication resolves, once for one id", async () => {
    const stored = async () => (await (await streamManager(speaking)).streams.info("EVENTS")).state.messages;
    const before = await stored();
    await publisher.arrived({ id: "eve", at: 3 }, { dedupeId: "eve-3" });
    await publisher.arrived({ id: "eve", at: 3 }, { dedupeId: "eve-3" });
    expect(await stored()).toBe(before + 1);
  });

  test("are stored in order without an acknowledgement each, with the trace of their call", async () => {
    const bus = await buses.connect("listener");
    const heard: [string, string][] = [];
    subscribe(
      bus,
      subscribesTo(visits, ["passed"]),
      { passed: ({ id }, { trace }) => void heard.push([id, trace.traceId]) },
      { mode: "each" },
    );
    await bus.flush();
    const { streams } = await streamManager(speaking);
    const before = (await streams.info("EVENTS")).state.messages;
    const call = createCallContext({ timeoutMs: 30_000 });
    const ids = Array.from({ length: 50 }, (_, nth) => `guest-${nth}`);
    for (const id of ids) expect(publisher.passed({ id }, { call })).toBe("ok");
    await eventually(() => heard.length === ids.length);
    expect(heard).toEqual(ids.map((id) => [id, call.trace.traceId]));
    await eventually(async () => (await streams.info("EVENTS")).state.messages === before + ids.length);
  });

  test("that are unreadable are counted and dropped, and disturb no others", async () => {
    const bus = await buses.connect("sceptic");
    const heard: string[] = [];
    subscribe(
      bus,
      arrivals,
      {
        arrived: ({ id }) => {
          if (id === "bad") throw new Error("the handler fails");
          heard.push(id);
        },
      },
      { mode: "each" },
    );
    await bus.flush();
    speaking[natsConnection].publish("event.greeter.arrived.x", "{nope");
    speaking[natsConnection].publish("event.greeter.arrived.x", '{"id":1}');
    await publisher.arrived({ id: "bad", at: 4 });
    await publisher.arrived({ id: "good", at: 5 });
    await eventually(() => heard.length === 1);
    expect(heard).toEqual(["good"]);
    const counted = await bus.metrics.eventsHandled.get();
    const of = (outcome: string) => counted.values.find(({ labels }) => labels.outcome === outcome)?.value;
    await eventually(() => of("ok") === 1);
    expect([of("unreadable"), of("failed")]).toEqual([2, 1]);
  });

  test("whose key is no subject token are refused, never published elsewhere", async () => {
    expect(await publisher.arrived({ id: "a.>", at: 1 })).toBe("invalid");
    expect(publisher.passed({ id: "*" })).toBe("invalid");
  });

  test("larger than a message of the broker are refused, since they never fit", async () => {
    expect(await publisher.left({ id: "x", note: "n".repeat(1_100_000) })).toBe("too_large");
  });

  test("are lost without a broker, which their outcome says and a metric counts", async () => {
    await using own = await startBuses({ jetstream: true });
    const bus = await own.connect("greeter");
    const lonely = await createPublisher(bus, visits);
    const lost = Promise.withResolvers<void>();
    bus.onDisconnect(lost.resolve);
    await own.server.kill();
    await lost.promise;
    expect(await lonely.left({ id: "x" })).toBe("failed");
    expect(lonely.passed({ id: "x" })).toBe("disconnected");
    const counted = await bus.metrics.eventsPublished.get();
    expect(counted.values.map(({ labels }) => labels)).toEqual([
      { name: "left", outcome: "failed" },
      { name: "passed", outcome: "disconnected" },
    ]);
  });
});
