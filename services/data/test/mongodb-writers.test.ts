import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { openMongo } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { MongoUrl } from "@devmesh/store/store-url";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import type { DataMessage, DataStore } from "../src/store/data-store.ts";
import { collectionsOf, recordIndexes } from "../src/store/mongodb/collections.ts";
import { createSearchSegments } from "../src/store/mongodb/search-segments.ts";
import { weightOf } from "../src/store/record-weight.ts";
import { type HeldHalf, startCommandGate } from "./command-gate.ts";
import { gatedDatabase } from "./gated-database.ts";

const never = new AbortController().signal;
/** Short, so that a test waits little for the turn of an adapter that was cut off. */
const leaseMs = 500;

function message(sequence: number, deviceId = "pump"): DataMessage {
  return {
    delivery: { streamCreated: "2026-01-01T00:00:00Z", sequence },
    timestamp: 1_767_225_600_000 + sequence,
    deviceId,
    topic: `db/${deviceId}/x`,
    payload: Buffer.from(String(sequence)),
    encoding: "text",
  };
}

const run = (from: number, to: number, deviceId?: string) =>
  Array.from({ length: to - from + 1 }, (_, at) => message(from + at, deviceId));

/** Reads on after `after` until there is nothing more. */
async function readOn(store: DataStore, after: string): Promise<DataRecord[]> {
  const items: DataRecord[] = [];
  for (let from = after; ; ) {
    const bounds = { caller: "test", skip: 0, limit: null, after: from, maxBytes: 10_000, searchMs: 5_000 };
    const page = await store.readPage({ order: "asc" }, bounds, never);
    items.push(...page.items);
    if (page.next === null) return items;
    from = page.next;
  }
}

/** Reads on after the last record again and again, as a client that follows the data does. */
function follow(store: DataStore) {
  const seen: DataRecord[] = [];
  let stopped = false;
  const reading = (async () => {
    for (;;) {
      const isLast = stopped;
      seen.push(...(await readOn(store, String(seen.at(-1)?.id ?? 0))));
      if (isLast) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  return {
    /** Resolves when the record of that message was seen. */
    async until(sequence: number) {
      await eventually(() => seen.some((record) => record.message === String(sequence)), { everyMs: 5 });
    },
    /** Reads once more and tells all that was seen. */
    async end() {
      stopped = true;
      await reading;
      return seen;
    },
  };
}

/** Tries a batch again until the store takes it, as the broker delivers one again that is not acknowledged. */
async function appendOnceTaken(store: DataStore, batch: readonly DataMessage[]) {
  for (;;) {
    try {
      return await store.append(batch);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }
}

const sequencesOf = (records: readonly DataRecord[]) => records.map((record) => Number(record.message));
const ascending = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);

describeOverMongodb("several writers of one MongoDB store", (mongodb) => {
  const under = gatedDatabase(mongodb, { leaseMs });
  const { openAt, openThroughGate } = under;

  test("batches of several at once, also the same ones, are stored once, and a follower misses nothing", async () => {
    // A turn that no pause of this process ends: a batch may have to wait for its turn, and is never overtaken.
    const stores = await Promise.all(
      [1, 2, 3].map(() => openAt(under.database.storeUrl, { leaseMs: 60_000 })),
    );
    const [first] = stores;
    if (first === undefined) throw new Error("there are three");
    const follower = follow(first);
    let next = 1;
    const outcomes = await Promise.all(
      stores.flatMap((store, writer) =>
        Array.from({ length: 8 }, async () => {
          // Each writer repeats the end of what the one before it stores.
          const from = Math.max(1, next - (writer + 1) * 3);
          next += 10;
          return await appendOnceTaken(store, run(from, next - 1));
        }),
      ),
    );
    const seen = await follower.end();
    expect(ascending(sequencesOf(seen))).toEqual(Array.from({ length: next - 1 }, (_, at) => at + 1));
    expect(outcomes.reduce((sum, { stored }) => sum + stored, 0)).toBe(next - 1);
    const ids = seen.map((record) => record.id);
    expect(ids).toEqual(ascending([...new Set(ids)]));
    expect(await readOn(first, "0")).toEqual(seen);
  });

  // The commands of a batch: take the turn, look for repeated and refused ones, insert, commit.
  const steps = [1, 2, 3, 4, 5].flatMap((step) =>
    (["request", "answer"] as const).map((half): [number, HeldHalf] => [step, half]),
  );

  test.each(steps)(
    "a writer that is cut off at its command %i (%s) neither loses, doubles nor hides anything, whenever it comes back",
    async (step, half) => {
      const cutOff = await openThroughGate();
      const other = await openAt();
      await cutOff.append(run(1, 10));
      const follower = follow(other);

      const held = under.gate.holdAt(step, half);
      const lost = cutOff.append(run(11, 20)).catch((error: unknown) => error);
      await held;
      // Another replica gets what the broker had no acknowledgement for, and newer messages, and somebody reads them.
      if (half === "answer") await other.append(run(11, 20));
      await other.append(run(21, 30));
      await follower.until(30);
      under.gate.release();
      const outcome = await lost;
      // What comes late has arrived by now or never will; then the cut off one goes on.
      await cutOff.append(run(11, 25));
      await cutOff.append(run(31, 40));
      await other.append(run(35, 50));

      const seen = await follower.end();
      expect(ascending(sequencesOf(seen))).toEqual(Array.from({ length: 50 }, (_, at) => at + 1));
      const ids = seen.map((record) => record.id);
      expect(ids).toEqual(ascending([...new Set(ids)]));
      expect(await readOn(other, "0")).toEqual(seen);
      if (outcome instanceof Error) expect(outcome.name).toBe("StoreUnavailable");
    },
  );

  test("a batch whose turn is being taken over is not taken for stored because it is still there", async () => {
    const cutOff = await openThroughGate();
    await using nextGate = await startCommandGate(mongodb().port);
    const next = await openAt(under.database.storeUrlBehind(nextGate.port));
    const atCommit = under.gate.holdAt(1, "request", "update");
    const stored = cutOff.append(run(1, 10)).then(
      () => true,
      () => false,
    );
    await atCommit;
    // The next one has the turn and has not yet made anything void.
    const atVoiding = nextGate.holdAt(1, "request", "insert");
    const taking = next.append(run(11, 11));
    await atVoiding;
    under.gate.release();
    // The commit fails, and whether it was made before is looked up: half of that before, half of it after the other's.
    await Promise.race([under.gate.holdAt(2, "request", "find"), stored]);
    nextGate.release();
    await taking;
    under.gate.release();
    expect(await stored).toBe(false);
    expect(sequencesOf(await readOn(next, "0"))).toEqual([11]);
  });

  test("a batch without delivery keys that was cut off is there whole or not at all, and once", async () => {
    const cutOff = await openThroughGate();
    const other = await openAt();
    const batch = run(1, 20).map((kept) => ({ ...kept, delivery: null }));
    // Without keys there is nothing to be looked up for them: turn, refusals, insert, commit.
    for (const step of [3, 4]) {
      const held = under.gate.holdAt(step, "answer");
      const lost = cutOff.append(batch).then(
        () => 20,
        () => 0,
      );
      await held;
      await other.append(run(step * 100, step * 100));
      const before = (await readOn(other, "0")).length;
      under.gate.release();
      const acknowledged = await lost;
      const records = await readOn(other, "0");
      expect(records).toHaveLength(before);
      expect(records.filter((record) => Number(record.message) <= 20).length % 20).toBe(0);
      if (acknowledged === 20) expect(records.filter(({ message: text }) => text === "20")).toHaveLength(1);
    }
  });

  test("processes that make a search segment at the same time, but end it elsewhere, leave no record out", async () => {
    const store = await openAt();
    await store.append(run(1, 20));
    const urls = [under.database.storeUrlBehind(under.gate.port), under.database.storeUrl];
    const plain = await Promise.all(urls.map((url) => openMongo(parseStoreUrl(url) as MongoUrl, [], never)));
    const [late, early] = plain.map((opened, at) =>
      createSearchSegments(collectionsOf(opened), {
        segmentIds: at === 0 ? 20 : 10,
        segmentBytes: 1_000_000,
      }),
    );
    const held = under.gate.holdAt(1, "request", "insert");
    const making = late?.build(20, never);
    await held;
    await early?.build(15, never);
    under.gate.release();
    await making;
    const indexedTo = await early?.indexedTo();
    for (const opened of plain) await opened.close();
    expect(indexedTo).toBe(10);
  });

  test("records that two processes delete at the same time are taken off the size once", async () => {
    const { segments } = await writeInOneSegment();
    const one = await openThroughGate();
    const other = await openAt();
    const held = under.gate.holdAt(1, "request", "delete");
    const deleting = one.deleteRecordsOf("a", 20);
    await held;
    expect(await other.deleteRecordsOf("a", 10)).toBe(10);
    under.gate.release();
    expect(await deleting).toBe(10);
    expect(segments).toBe(1);
    expect((await other.size()).bytes).toBe(20 * weightOf("b", "db/b/x", 2));
  });

  test("a death before what was deleted was taken off makes no other device pay, once segments are counted again", async () => {
    await writeInOneSegment();
    const dying = await openThroughGate();
    const other = await openAt();
    // The records are deleted, and what they weighed is never taken off.
    const held = under.gate.holdAt(1, "request", "update");
    const deleting = dying.deleteRecordsOf("a", 15).catch((error: unknown) => error);
    await eventually(async () => (await readOn(other, "0")).length === 25);
    await Promise.race([held, deleting]);
    const counted = 40 * weightOf("a", "db/a/x", 2);
    expect((await other.size()).bytes).toBeGreaterThan(25 * weightOf("a", "db/a/x", 2));
    expect((await other.size()).bytes).toBeLessThanOrEqual(counted);
    expect(await other.deleteExpired(0, 10)).toBe(0);
    const { bytes } = await other.size();
    expect(bytes).toBe(25 * weightOf("a", "db/a/x", 2));
    expect(await other.deleteHeaviest(10, bytes - 1)).toBe(1);
    const left = await readOn(other, "0");
    expect(left.filter(({ device_id }) => device_id === "a")).toHaveLength(5);
    expect(left.filter(({ device_id }) => device_id === "b")).toHaveLength(19);
    under.gate.release();
    await deleting;
  });

  test("segments of an older release are counted before a device pays", async () => {
    await writeInOneSegment();
    const plain = await openMongo(parseStoreUrl(under.database.storeUrl) as MongoUrl, [], never);
    const { segments, shares } = collectionsOf(plain);
    await shares.deleteMany({});
    await segments.updateMany({}, { $unset: { counted: 1 } });
    await plain.close();
    const store = await openAt();
    await store.append(run(100, 102, "c"));
    expect(await store.deleteHeaviest(10, (await store.size()).bytes - 1)).toBe(1);
    expect((await readOn(store, "0")).filter(({ device_id }) => device_id === "c")).toHaveLength(3);
  });

  /** Of devices `a` and `b`, 20 records each, by turns. */
  async function writeInOneSegment(): Promise<{ readonly segments: number }> {
    const store = await openAt();
    await store.append(Array.from({ length: 40 }, (_, at) => message(10 + at, at % 2 === 0 ? "a" : "b")));
    const plain = await openMongo(parseStoreUrl(under.database.storeUrl) as MongoUrl, [], never);
    const collections = collectionsOf(plain);
    const bounds = { segmentIds: 40, segmentBytes: 1_000_000 };
    await createSearchSegments(collections, bounds).build(40, never);
    const segments = await collections.segments.countDocuments();
    await plain.close();
    return { segments };
  }

  test("what the server refuses for reasons of its own is no message's fault", async () => {
    const store = await openAt();
    const plain = await openMongo(parseStoreUrl(under.database.storeUrl) as MongoUrl, [], never);
    await collectionsOf(plain).records.dropIndex(recordIndexes.delivery);
    await plain.close();
    await expect(store.append(run(1, 10))).rejects.toThrow(StoreUnavailable);
  });

  test("ids go on beyond 32 bits", async () => {
    const store = await openAt();
    const plain = await openMongo(parseStoreUrl(under.database.storeUrl) as MongoUrl, [], never);
    const { writer, indexed } = collectionsOf(plain);
    await indexed.insertOne({ _id: "sealed", to: 2 ** 31 - 6 });
    await writer.updateOne({ _id: "writer" }, { $set: { visible: 2 ** 31 - 6, next: 2 ** 31 - 5 } });
    await plain.close();
    await store.append(run(1, 10));
    await store.append(run(5, 15));
    const records = await readOn(store, "0");
    expect(sequencesOf(records)).toEqual(Array.from({ length: 15 }, (_, at) => at + 1));
    expect(records[0]?.id).toBe(2 ** 31 - 5);
    expect(await readOn(store, String(2 ** 31 + 3))).toEqual(records.slice(9));
  });

  test("two that delete what is over a bound at the same time delete it once", async () => {
    const one = await openAt();
    const other = await openAt();
    await one.append(run(1, 400));
    const aboveBytes = (await one.size()).bytes / 2;
    for (let deleted = 1; deleted > 0; )
      deleted = (await one.deleteHeaviest(10, aboveBytes)) + (await other.deleteHeaviest(10, aboveBytes));
    const { bytes } = await one.size();
    expect(bytes).toBeLessThanOrEqual(aboveBytes);
    expect(bytes).toBeGreaterThan(0.9 * aboveBytes);
  });

  test("what keeps late inserts out outlives the records around it, and is no record", async () => {
    const cutOff = await openThroughGate();
    const other = await openAt();
    const held = under.gate.holdAt(4, "request");
    const late = cutOff.append(run(1, 10)).catch((error: unknown) => error);
    await held;
    await other.append(run(11, 12));
    expect(await other.deleteHeaviest(100, 0)).toBe(2);
    expect(await other.deleteExpired(Date.now() + 1_000, 100)).toBe(0);
    expect(await other.size()).toEqual({ bytes: 0, oldest: null });
    under.gate.release();
    await late;
    expect(await readOn(other, "0")).toEqual([]);
  });

  test("a batch that was checked before a device was refused stores nothing of it afterwards", async () => {
    const cutOff = await openThroughGate();
    const other = await openAt();
    const held = under.gate.holdAt(4, "request");
    const late = cutOff.append(run(1, 10, "gone")).catch((error: unknown) => error);
    await held;
    await other.refuseDevice("gone");
    under.gate.release();
    await late;
    expect(await readOn(other, "0")).toEqual([]);
    expect(await cutOff.append(run(1, 10, "gone"))).toMatchObject({ stored: 0, refused: 10 });
    expect(await readOn(other, "0")).toEqual([]);
  });
});
