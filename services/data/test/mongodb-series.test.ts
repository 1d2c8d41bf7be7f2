import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import { MongoClient } from "mongodb";
import type { DataStore } from "../src/store/data-store.ts";
import type { HeldHalf } from "./command-gate.ts";
import { gatedDatabase } from "./gated-database.ts";
import { naive, readSpans, type Sample, sampleMessage } from "./series.suite.ts";

const start = Date.parse("2026-03-28T00:00:00.000Z");
const hour = 3_600_000;

describeOverMongodb("several processes that roll up one MongoDB store", (mongodb) => {
  // Short, so that a test waits little for the lease of an adapter that was cut off.
  const under = gatedDatabase(mongodb, { leaseMs: 100 });
  const { openAt, openThroughGate } = under;

  /** Rolls up until nothing is left, also what another process had begun. */
  const rollUpAll = (store: DataStore) =>
    eventually(async () => (await store.rollUp().catch(() => "elsewhere")) === "done");

  /** Publishes numbers of a device, and compares the hours of a store with them. */
  function publisher() {
    const samples: Sample[] = [];
    const edges = Array.from({ length: 5 }, (_, at) => start + at * hour);
    return {
      async publish(store: DataStore, values: readonly number[]) {
        const more = values.map((value) => ({ deviceId: "pump", at: start + value * 200_000, value }));
        samples.push(...more);
        await store.append(more.map(sampleMessage));
      },
      async expectExact(store: DataStore) {
        expect(await readSpans(store, "pump", edges, "hours")).toEqual(naive(samples, "pump", edges));
      },
    };
  }

  // Takes the lease, finds the part, notes it; reads, finds and stores series, then buckets.
  const steps = Array.from({ length: 12 }, (_, at) => at + 1).flatMap((step) =>
    (["request", "answer"] as const).map((half): [number, HeldHalf] => [step, half]),
  );

  test.each(steps)(
    "one that is cut off at its command %i (%s) adds nothing twice and loses nothing, whenever it comes back",
    async (step, half) => {
      const { publish, expectExact } = publisher();
      const other = await openAt();
      const cutOff = await openThroughGate();
      await publish(other, [1, 2, 3]);
      await rollUpAll(cutOff);
      await publish(other, [4, 20, 2, 30]);

      const held = under.gate.holdAt(step, half);
      const lost = cutOff.rollUp().catch((error: unknown) => error);
      await Promise.race([held, lost]);
      await expectExact(other);
      await publish(other, [5, 31]);
      await rollUpAll(other);
      await expectExact(other);
      under.gate.release();
      await lost;
      await rollUpAll(other);
      await expectExact(other);
      await rollUpAll(cutOff);
      await expectExact(cutOff);
    },
  );

  test.each([
    ["nothing was being added", 0],
    ["a part was being added", 2],
  ])("a restored backup whose buckets have more than its position says is exact, %s", async (_, begun) => {
    const { publish, expectExact } = publisher();
    const store = await openAt(under.database.storeUrl, { leaseMs: 30_000 });
    await publish(store, [1, 2, 3]);
    await rollUpAll(store);
    await using client = new MongoClient(mongodb().url);
    const position = client.db(under.database.name).collection<{ done: number }>("roll_up");
    const copied = await position.findOne();
    // Of the hours of 40 and 60 the buckets are newer than those of 1 to 3, to which only later records are added.
    await publish(store, [4, 20, 40]);
    await rollUpAll(store);
    await publish(store, [60]);
    await rollUpAll(store);
    await publish(store, [5, 41, 61]);
    const { done = 0 } = copied ?? {};
    await position.updateOne({}, { $set: { done, target: done + begun } });
    await expectExact(store);
    await rollUpAll(store);
    await expectExact(store);
  });
});
