import { type MongoStore, unlessDuplicate } from "./mongodb.ts";

/** How long a count must have been the same before it is corrected, in milliseconds; calls have shorter deadlines. */
const stillMs = 60_000;

interface CounterDocument {
  /** The name of the limit. */
  readonly _id: string;
  /** Documents that are stored or are being inserted; more than that after a crash, never fewer. */
  readonly count: number;
  /** Incremented with each change of the count. */
  readonly changes: number;
  /** Incremented with each correction: what was read before it may not be subtracted after it. */
  readonly corrections: number;
}

/** Options of a limit. */
export interface MongoLimitOptions {
  /** Unique in the database. */
  readonly name: string;
  /** Counts the limited documents in the collection. */
  readonly countStored: (signal: AbortSignal) => Promise<number>;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

/**
 * At most so many documents of a kind, also where replicas insert them at the same time and die at any step. The count
 * is incremented before an insert and decremented after a removal, so a death between the two only makes it too high.
 */
export interface MongoLimit {
  /**
   * Runs `insert`, which stores a document or returns false, unless there are `most`; false where none was stored.
   * `amount` is its share of `most`. An insert that throws stays counted until the next correction.
   */
  insert(
    most: number,
    insert: () => Promise<boolean>,
    signal: AbortSignal,
    amount?: number,
  ): Promise<boolean>;
  /** Runs `remove`, and returns what it returns: how much it removed. */
  remove(remove: () => Promise<number>, signal: AbortSignal): Promise<number>;
  /**
   * Corrects a count that was too high, and has been the same for a minute. Any replica calls it, about once a minute;
   * an insert that its server carries out more than a minute after its reservation is not counted until the next time.
   */
  correct(signal: AbortSignal): Promise<void>;
}

/** A limit whose count is a document of the collection `limits`. */
export function createMongoLimit(
  { db, run }: Pick<MongoStore, "db" | "run">,
  { name: _id, countStored, nowMs = () => performance.now() }: MongoLimitOptions,
): MongoLimit {
  const counters = db.collection<CounterDocument>("limits");
  /** The last number of changes that was seen, and since when. */
  let seen: { readonly changes: number; readonly atMs: number } | null = null;

  const find = (signal: AbortSignal) => run(signal, () => counters.findOne({ _id }, { signal }));

  /** Adds to a count up to `most`; null where there is no room. */
  async function reserve(most: number, amount: number, signal: AbortSignal): Promise<CounterDocument | null> {
    for (;;) {
      const reserved = await run(signal, () =>
        counters.findOneAndUpdate(
          { _id, count: { $lte: most - amount } },
          { $inc: { count: amount, changes: 1 } },
          { returnDocument: "after" },
        ),
      );
      if (reserved !== null) return reserved;
      const found = await find(signal);
      if (found !== null) {
        // With room, another insert has created the count or given up a place in the meantime.
        if (found.count > most - amount) return null;
        continue;
      }
      // Documents of an earlier release are counted. Until there is a count, nobody inserts.
      const first = { _id, count: await countStored(signal), changes: 0, corrections: 0 };
      await unlessDuplicate(run(signal, () => counters.insertOne(first)));
    }
  }

  /** Subtracts from a count that has not been corrected since it was read. */
  async function release({ corrections }: CounterDocument, amount: number, signal: AbortSignal) {
    const change = { $inc: { count: -amount, changes: 1 } };
    await run(signal, () => counters.updateOne({ _id, corrections }, change));
  }

  return {
    async insert(most, insert, signal, amount = 1) {
      const reserved = await reserve(most, amount, signal);
      if (reserved === null) return false;
      if (await insert()) return true;
      await release(reserved, amount, signal);
      return false;
    },

    async remove(remove, signal) {
      const before = await find(signal);
      const removed = await remove();
      if (before !== null && removed > 0) await release(before, removed, signal);
      return removed;
    },

    async correct(signal) {
      const found = await find(signal);
      if (found === null) return;
      const { changes } = found;
      if (seen?.changes !== changes) seen = { changes, atMs: nowMs() };
      if (nowMs() - seen.atMs < stillMs) return;
      const count = await countStored(signal);
      if (count === found.count) return;
      const correction = { $set: { count }, $inc: { changes: 1, corrections: 1 } };
      await run(signal, () => counters.updateOne({ _id, changes }, correction));
    },
  };
}
