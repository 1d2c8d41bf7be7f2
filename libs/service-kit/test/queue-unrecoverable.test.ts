import { defineQueue } from "@devmesh/contracts/contract";
import { eventually } from "@devmesh/testkit/eventually";
import { startBuses, type TestBuses } from "@devmesh/testkit/sample-mesh/buses";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { createQueueAdmin } from "../src/queue/admin.ts";
import { type Attempt, consumeQueue, UnrecoverableError } from "../src/queue/consumer.ts";
import { createProducer } from "../src/queue/producer.ts";

const letters = defineQueue({
  name: "letters",
  job: z.object({ hopeless: z.boolean() }),
  backoffMs: [10, 10],
  attemptMs: 5_000,
});

describe("a job that no further attempt can help", () => {
  let buses: TestBuses;
  beforeAll(async () => {
    buses = await startBuses({ jetstream: true });
  });
  afterAll(() => buses.stop());

  test("becomes a dead letter after one attempt, others after all", async () => {
    const bus = await buses.connect("postman");
    const attempts: (Pick<Attempt, "number" | "sequence" | "queuedAt"> & { hopeless: boolean })[] = [];
    const consuming = await consumeQueue(
      bus,
      letters,
      async ({ hopeless }, { number, sequence, queuedAt }) => {
        attempts.push({ hopeless, number, sequence, queuedAt });
        throw hopeless ? new UnrecoverableError("nobody lives there") : new Error("not at home");
      },
    );
    const producer = await createProducer(bus, letters);
    await producer.enqueue({ hopeless: true });
    await producer.enqueue({ hopeless: false });
    const office = createQueueAdmin(bus, letters);
    await eventually(async () => (await office.count()).dead === 2);
    await consuming.stop();
    expect((await office.listDeadLetters({ limit: 10 })).letters).toMatchObject([
      { job: { hopeless: true }, attempts: 1, error: "nobody lives there" },
      { job: { hopeless: false }, attempts: 3, error: "not at home" },
    ]);
    const others = attempts.filter(({ hopeless }) => !hopeless);
    expect(others.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(new Set(others.map(({ sequence }) => sequence)).size).toBe(1);
    expect(new Set(others.map(({ queuedAt }) => queuedAt.getTime())).size).toBe(1);
  });
});
