import { defineQueue } from "@devmesh/contracts/contract";
import { eventually } from "@devmesh/testkit/eventually";
import { startBuses, type TestBuses } from "@devmesh/testkit/sample-mesh/buses";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { natsConnection } from "../src/connection/nats-connection.ts";
import { createQueueAdmin } from "../src/queue/admin.ts";
import { type Attempt, consumeQueue } from "../src/queue/consumer.ts";
import { createProducer } from "../src/queue/producer.ts";

/** A new queue for each test. */
const queueNamed = (name: string, backoffMs: number[] = [1, 1], attemptMs = 2_000) =>
  defineQueue({ name, job: z.object({ to: z.string() }), backoffMs, attemptMs });

describe("a work queue", () => {
  let buses: TestBuses;
  beforeAll(async () => {
    buses = await startBuses({ jetstream: true });
  });
  afterAll(() => buses.stop());

  test("gives each job to one of the replicas, those queued before any was there too", async () => {
    const queue = queueNamed("shared");
    const producer = await createProducer(await buses.connect("producer"), queue);
    for (let count = 0; count < 20; count++) await producer.enqueue({ to: String(count) });
    const done: string[] = [];
    const consuming = await Promise.all(
      [1, 2].map(async () =>
        consumeQueue(await buses.connect("worker"), queue, async ({ to }) => void done.push(to), {
          concurrency: 3,
        }),
      ),
    );
    await eventually(() => done.length === 20);
    expect(new Set(done).size).toBe(20);
    await Promise.all(consuming.map((one) => one.stop()));
    expect((await createQueueAdmin(await buses.connect("worker"), queue).count()).pending).toBe(0);
  });

  test("queues a job once for one id", async () => {
    const queue = queueNamed("deduped");
    const bus = await buses.connect("worker");
    const producer = await createProducer(bus, queue);
    await producer.enqueue({ to: "ada" }, { dedupeId: "1" });
    await producer.enqueue({ to: "ada" }, { dedupeId: "1" });
    const done: string[] = [];
    const consuming = await consumeQueue(bus, queue, async ({ to }) => void done.push(to));
    await producer.enqueue({ to: "bob" });
    await eventually(() => done.includes("bob"));
    expect(done).toEqual(["ada", "bob"]);
    await consuming.stop();
  });

  test("tries a failed job again, then keeps it with its error, and can retry it once", async () => {
    const queue = queueNamed("failing");
    const bus = await buses.connect("worker");
    const producer = await createProducer(bus, queue);
    const attempts: Pick<Attempt, "number" | "last">[] = [];
    let fail = true;
    const consuming = await consumeQueue(bus, queue, async (_, { number, last }) => {
      attempts.push({ number, last });
      if (fail) throw new Error(`no answer\r\nat attempt ${number}`);
    });
    const office = createQueueAdmin(bus, queue);
    await producer.enqueue({ to: "ada" });
    await eventually(async () => (await office.count()).dead === 1);
    expect(attempts).toEqual([
      { number: 1, last: false },
      { number: 2, last: false },
      { number: 3, last: true },
    ]);
    await eventually(async () => (await office.count()).pending === 0);
    const { letters, next } = await office.listDeadLetters({ limit: 10 });
    expect(next).toBeNull();
    expect(letters).toMatchObject([{ job: { to: "ada" }, error: "no answer at attempt 3", attempts: 3 }]);
    fail = false;
    const sequence = letters[0]?.sequence ?? 0;
    expect(await office.retryDeadLetter(sequence)).toBe(true);
    expect(await office.retryDeadLetter(sequence)).toBe(false);
    await eventually(async () => attempts.length === 4 && (await office.count()).pending === 0);
    expect((await office.count()).dead).toBe(0);
    await consuming.stop();
  });

  test("queues a dead letter once that several retry at once, and tells none of them that it failed", async () => {
    const queue = queueNamed("contested", []);
    const bus = await buses.connect("worker");
    const producer = await createProducer(bus, queue);
    const refusing = await consumeQueue(bus, queue, () => Promise.reject(new Error("no")));
    const office = createQueueAdmin(bus, queue);
    for (let round = 1; round <= 5; round++) await producer.enqueue({ to: `ada ${round}` });
    await eventually(async () => (await office.count()).dead === 5);
    await refusing.stop();
    const { letters } = await office.listDeadLetters({ limit: 10 });
    for (const { sequence } of letters) {
      const retries = await Promise.all([1, 2, 3, 4].map(() => office.retryDeadLetter(sequence)));
      expect(retries).toContain(true);
    }
    expect(await office.count()).toEqual({ pending: 5, dead: 0 });
  });

  test("pages through its dead letters", async () => {
    const queue = queueNamed("paged", []);
    const bus = await buses.connect("worker");
    const producer = await createProducer(bus, queue);
    const consuming = await consumeQueue(bus, queue, () => Promise.reject(new Error("never")));
    const office = createQueueAdmin(bus, queue);
    for (const to of ["a", "b", "c"]) await producer.enqueue({ to });
    await eventually(async () => (await office.count()).dead === 3);
    const first = await office.listDeadLetters({ limit: 2 });
    expect(first.letters.map(({ job }) => job?.to)).toEqual(["a", "b"]);
    const second = await office.listDeadLetters({ after: first.next ?? 0, limit: 2 });
    expect(second.letters.map(({ job }) => job?.to)).toEqual(["c"]);
    expect(second.next).toBeNull();
    await consuming.stop();
  });

  test("ends an attempt that takes too long, and tells its handler", async () => {
    const queue = queueNamed("slow", [], 50);
    const bus = await buses.connect("worker");
    const producer = await createProducer(bus, queue);
    const signals: AbortSignal[] = [];
    const consuming = await consumeQueue(bus, queue, (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => undefined);
    });
    await producer.enqueue({ to: "ada" });
    await eventually(async () => (await createQueueAdmin(bus, queue).count()).dead === 1);
    expect(signals[0]?.aborted).toBe(true);
    await consuming.stop();
  });

  test("hands a job whose consumer died to another one", async () => {
    const queue = queueNamed("orphaned");
    const dying = await buses.connect("worker");
    const producer = await createProducer(dying, queue);
    const begun = Promise.withResolvers<void>();
    await consumeQueue(dying, queue, () => {
      begun.resolve();
      return new Promise(() => undefined);
    });
    await producer.enqueue({ to: "ada" });
    await begun.promise;
    await dying[natsConnection].close();
    const taken = Promise.withResolvers<number>();
    const consuming = await consumeQueue(await buses.connect("worker"), queue, async (_, { number }) =>
      taken.resolve(number),
    );
    expect(await taken.promise).toBe(2);
    await consuming.stop();
  });

  test("goes on after the broker was killed", async () => {
    await using own = await startBuses({ jetstream: true });
    const queue = queueNamed("survivor");
    const bus = await own.connect("worker");
    const producer = await createProducer(bus, queue);
    const done: string[] = [];
    const consuming = await consumeQueue(bus, queue, async ({ to }) => void done.push(to));
    await producer.enqueue({ to: "before" });
    await eventually(() => done.length === 1);
    const back = new Promise<void>((resolve) => bus.onReconnect(resolve));
    await own.server.kill();
    await own.server.restart();
    await back;
    await eventually(() =>
      producer.enqueue({ to: "after" }, { dedupeId: "after" }).then(
        () => true,
        () => false,
      ),
    );
    await eventually(() => done.includes("after"));
    await consuming.stop();
  });

  test("does no job twice that ended, or went on, while the broker was away", async () => {
    await using own = await startBuses({ jetstream: true });
    const queue = queueNamed("deaf", [1, 1, 1, 1], 60_000);
    const bus = await own.connect("worker");
    const producer = await createProducer(bus, queue);
    const begun: string[] = [];
    const ends = { meanwhile: Promise.withResolvers<void>(), later: Promise.withResolvers<void>() };
    const consuming = await consumeQueue(
      bus,
      queue,
      async ({ to }) => {
        begun.push(to);
        await ends[to as keyof typeof ends].promise;
      },
      { concurrency: 4 },
    );
    for (const to of Object.keys(ends)) await producer.enqueue({ to });
    await eventually(() => begun.length === 2);
    const lost = new Promise<void>((resolve) => bus.onDisconnect(resolve));
    const back = new Promise<void>((resolve) => bus.onReconnect(resolve));
    await own.server.kill();
    await lost;
    ends.meanwhile.resolve();
    // Long enough for the broker to think that nobody is at work any more.
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    await own.server.restart();
    await back;
    const office = createQueueAdmin(bus, queue);
    await eventually(async () => (await office.count()).pending === 1);
    ends.later.resolve();
    await eventually(async () => (await office.count()).pending === 0);
    expect(begun.sort()).toEqual(["later", "meanwhile"]);
    await consuming.stop();
  });
});
