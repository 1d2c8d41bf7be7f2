import { defineEvent, defineEvents } from "@devmesh/contracts/contract";
import { subscribesTo } from "@devmesh/contracts/topology";
import { eventually } from "@devmesh/testkit/eventually";
import { startBroker, visits } from "@devmesh/testkit/sample-mesh/broker";
import { startBuses } from "@devmesh/testkit/sample-mesh/buses";
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import type { Bus } from "../src/connection/bus.ts";
import { streamManager } from "../src/connection/streams.ts";
import {
  followEvents,
  replayEvents,
  type StreamedEvent,
  type StreamPosition,
} from "../src/events/event-stream.ts";
import { createPublisher } from "../src/events/publisher.ts";

const rooms = defineEvents({
  service: "greeter",
  events: {
    entered: defineEvent(z.object({ id: z.string() }), ({ id }) => id),
    cleaned: defineEvent(z.object({ id: z.string() }), ({ id }) => id),
    painted: defineEvent(z.object({ id: z.string() }), ({ id }) => id),
  },
});
const followed = [subscribesTo(rooms, ["entered", "cleaned"])];

/** What a follower was handed, until it is stopped. */
function follow(bus: Bus) {
  const stopping = new AbortController();
  const began: StreamPosition[] = [];
  const events: StreamedEvent[] = [];
  const done = followEvents(
    bus,
    followed,
    { began: (position) => began.push(position), events: (batch) => events.push(...batch) },
    stopping.signal,
  );
  return {
    began,
    events,
    keys: () => events.map(({ key }) => key),
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

async function replayed(bus: Bus, after: number, until: number, about?: string) {
  const found: { gaps: number[]; keys: string[] } = { gaps: [], keys: [] };
  const { signal } = new AbortController();
  for await (const { position, events } of replayEvents(bus, followed, {
    after,
    until: () => until,
    about,
    signal,
  })) {
    if (position.gap) found.gaps.push(position.after);
    found.keys.push(...events.map(({ key }) => key));
  }
  return found;
}

const numbered = (count: number, prefix = "room") =>
  Array.from({ length: count }, (_, at) => ({ id: `${prefix}-${at}` }));
const idsOf = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id);

describe("following events", () => {
  test("hands over those that are named, in the stream's order, with their sequence", async () => {
    await using buses = await startBuses({ jetstream: true });
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    await publisher.entered({ id: "before" });
    const follower = follow(await buses.connect("listener"));
    await eventually(() => follower.began.length === 1);
    expect(follower.began).toEqual([{ after: 1, gap: false }]);
    await publisher.entered({ id: "a" });
    await publisher.painted({ id: "b" });
    await publisher.cleaned({ id: "c" });
    await eventually(() => follower.events.length === 2);
    expect(
      follower.events.map(({ payload, ...rest }) => ({ ...rest, payload: Buffer.from(payload).toString() })),
    ).toEqual([
      { sequence: 2, service: "greeter", name: "entered", key: "a", payload: '{"id":"a"}' },
      { sequence: 4, service: "greeter", name: "cleaned", key: "c", payload: '{"id":"c"}' },
    ]);
    await follower.stop();
  });

  test("misses none and doubles none under load, over restarts of the broker", async () => {
    await using buses = await startBuses({ jetstream: true });
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    const follower = follow(await buses.connect("listener"));
    await eventually(() => follower.began.length === 1);
    const told = new Set<string>();
    let ending = false;
    const loud = (async () => {
      for (let at = 0; !ending; at += 20) {
        const batch = Array.from({ length: 20 }, (_, offset) => `n-${at + offset}`);
        const outcomes = await Promise.all(batch.map((id) => publisher.entered({ id })));
        outcomes.forEach((outcome, index) => {
          if (outcome === "ok") told.add(batch[index] ?? "");
        });
      }
    })();
    for (const restarts of [1, 2]) {
      await eventually(() => told.size > restarts * 200);
      await buses.server.kill();
      await buses.server.restart();
    }
    const enough = told.size + 200;
    await eventually(() => told.size > enough);
    ending = true;
    await loud;
    await eventually(() => [...told].every((id) => follower.events.some(({ key }) => key === id)));
    const sequences = follower.events.map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].sort((one, other) => one - other));
    expect(follower.began).toHaveLength(1);
    await follower.stop();
  });

  test("tells that events were lost where the stream is another one", async () => {
    await using buses = await startBuses({ jetstream: true });
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    for (const event of numbered(5)) await publisher.entered(event);
    const follower = follow(await buses.connect("listener"));
    await eventually(() => follower.began.length === 1);
    const manager = await streamManager(speaking);
    await manager.streams.delete("EVENTS");
    const again = await createPublisher(speaking, rooms);
    await again.entered({ id: "anew" });
    await eventually(() => follower.events.length === 1);
    expect(follower.began).toEqual([
      { after: 5, gap: false },
      { after: 0, gap: true },
    ]);
    expect(follower.events[0]).toMatchObject({ sequence: 1, key: "anew" });
    await follower.stop();
  });

  test("waits for a stream that is not there yet, and leaves no consumer behind", async () => {
    await using buses = await startBuses({ jetstream: true });
    const follower = follow(await buses.connect("listener"));
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    await eventually(() => follower.began.length === 1);
    await publisher.entered({ id: "first" });
    await eventually(() => follower.keys().includes("first"));
    const manager = await streamManager(speaking);
    const consumers = async () => (await manager.streams.info("EVENTS")).state.consumer_count;
    expect(await consumers()).toBe(1);
    await follower.stop();
    expect(await consumers()).toBe(0);
  });

  test("needs no right but those that `follows` grants", async () => {
    await using broker = await startBroker();
    const publisher = await createPublisher(await broker.connect("greeter"), visits);
    const bus = await broker.connect("watcher");
    const stopping = new AbortController();
    const heard: string[] = [];
    let began = false;
    const done = followEvents(
      bus,
      [subscribesTo(visits, ["visited"])],
      {
        began: () => {
          began = true;
        },
        events: (batch) => heard.push(...batch.map(({ key }) => key)),
      },
      stopping.signal,
    );
    await eventually(() => began);
    await publisher.visited({ id: "ada", at: 1 });
    await eventually(() => heard.includes("ada"));
    stopping.abort();
    await done;
    const { signal } = new AbortController();
    const options = { after: 0, until: () => 1, about: undefined, signal };
    for await (const { events } of replayEvents(bus, [subscribesTo(visits, ["visited"])], options))
      heard.push(...events.map(({ key }) => `again ${key}`));
    expect(heard).toEqual(["ada", "again ada"]);
  });
});

describe("replaying events", () => {
  test("reads what lies between two sequences, once", async () => {
    await using buses = await startBuses({ jetstream: true });
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    const all = numbered(1_200);
    await Promise.all(all.map((event) => publisher.entered(event)));
    const first = await replayed(speaking, 0, 1_200);
    expect(first.gaps).toEqual([]);
    expect([...first.keys].sort()).toEqual(idsOf(all).sort());
    expect((await replayed(speaking, 1_199, 1_200)).keys).toEqual(first.keys.slice(-1));
    expect(await replayed(speaking, 1_200, 1_200)).toEqual({ gaps: [], keys: [] });
  });

  test("tells of what is not kept any more, and of a sequence that was never given", async () => {
    await using buses = await startBuses({ jetstream: true });
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    for (const event of numbered(10)) await publisher.entered(event);
    const manager = await streamManager(speaking);
    await manager.streams.purge("EVENTS", { seq: 8 });
    expect(await replayed(speaking, 3, 10)).toEqual({ gaps: [7], keys: ["room-7", "room-8", "room-9"] });
    expect(await replayed(speaking, 7, 10)).toEqual({ gaps: [], keys: ["room-7", "room-8", "room-9"] });
    expect(await replayed(speaking, 99, 99)).toEqual({ gaps: [10], keys: [] });
  });

  test("reads those about one thing alone", async () => {
    await using buses = await startBuses({ jetstream: true });
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    for (const id of ["hall", "attic", "hall", "cellar"]) await publisher.entered({ id });
    await publisher.painted({ id: "hall" });
    await publisher.cleaned({ id: "hall" });
    expect(await replayed(speaking, 0, 6, "hall")).toEqual({ gaps: [], keys: ["hall", "hall", "hall"] });
    expect(await replayed(speaking, 0, 6, "shed")).toEqual({ gaps: [], keys: [] });
  });

  test("leaves none out where the broker takes longer than a request for them waits", async () => {
    await using buses = await startBuses({ jetstream: true });
    const speaking = await buses.connect("greeter");
    const publisher = await createPublisher(speaking, rooms);
    for (const event of numbered(3)) await publisher.entered(event);
    const manager = await streamManager(speaking);
    const { signal } = new AbortController();
    const keys: string[] = [];
    const options = { after: 0, until: () => 3, about: undefined, signal };
    for await (const { events } of replayEvents(speaking, followed, options)) {
      if (keys.length === 0 && events.length === 0) {
        const [consumer] = await manager.consumers.list("EVENTS").next();
        await manager.consumers.pause("EVENTS", consumer?.name ?? "", new Date(Date.now() + 60_000));
      }
      keys.push(...events.map(({ key }) => key));
    }
    expect(keys).toEqual(idsOf(numbered(3)));
  });
});

describe("live events", () => {
  test("reach who listens, are kept nowhere, and are dropped where they cannot go", async () => {
    const readings = defineEvents({
      service: "greeter",
      events: {
        read: {
          schema: z.object({ text: z.string() }),
          key: () => "all",
          live: true,
        },
      },
    });
    await using buses = await startBuses();
    const speaking = await buses.connect("greeter");
    // A server without JetStream: nothing of it is needed.
    const { read } = await createPublisher(speaking, readings);
    expect(read({ text: "to nobody" })).toBe("ok");
    expect(read({ text: "x".repeat(2 * 1024 * 1024) })).toBe("too_large");
    for (let sent = 0; read({ text: "x".repeat(512 * 1024) }) === "ok"; sent++)
      if (sent > 100) throw new Error("never congested");
    expect(read({ text: "behind them" })).toBe("congested");
    await eventually(() => read({ text: "later" }) === "ok");
    const lost = Promise.withResolvers<void>();
    speaking.onDisconnect(lost.resolve);
    await buses.server.kill();
    await lost.promise;
    expect(read({ text: "without a broker" })).toBe("disconnected");
  });
});
