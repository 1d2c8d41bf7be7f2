import { randomUUID } from "node:crypto";
import { setTimeout as sleepFor } from "node:timers/promises";
import { retry } from "@devmesh/service-kit/retry";
import { type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { OutcomeUnknown } from "../data-store.ts";
import type { Collections, WriterDocument } from "./collections.ts";

/** The longest wait for the lease, in milliseconds. */
const leaseWaitMs = 15_000;
/** How long a commit whose reply was lost is retried, in milliseconds. */
const commitRetryMs = 5_000;

/** Ids for one batch. */
interface Reserved {
  readonly firstId: number;
  /** Notes a stored record, by which a commit whose reply was lost can be recognised. */
  readonly noteStored: (id: number) => void;
}

/** Writes one batch at a time, over all processes, and makes it visible as a whole. */
export interface Writer {
  /**
   * Takes the lease, reserves `ids` record ids, does the work and makes what it stored visible; when the work throws,
   * that stays invisible. @throws StoreUnavailable without the lease, or when it was lost; OutcomeUnknown
   */
  write<T>(ids: number, work: (reserved: Reserved) => Promise<T>): Promise<T>;
  /** The last id that is final: up to it, no more record will be stored. */
  visible(signal: AbortSignal): Promise<number>;
}

interface WriterLease {
  readonly holder: string;
  readonly firstId: number;
  readonly lastId: number;
  /** The last id that was final before. */
  readonly visible: number;
}

/**
 * Creates the document of the lease, if it is missing. A lease lasts `leaseMs` and is renewed three times as often.
 *
 * The steps of a write, and what a crash at each leaves (ADR 18):
 * 1. One update of `writer` takes the lease when it is free or has expired, and advances `next`. Left: unused ids.
 * 2. Ids between `visible` and the own ones belong to writes that never committed. Each gets a void, and records stored
 *    under one become voids, so that no late insert can succeed. After a crash the next write repeats it.
 * 3. The work. After a crash its records are above `visible`, where no query reads, and the next write voids them.
 * 4. The commit: one update, which only the holder can do, advances `visible`. It fails if another lease began.
 */
export async function createWriter(
  store: MongoStore,
  { run, writer, records }: Collections,
  leaseMs: number,
): Promise<Writer> {
  const first: WriterDocument = { _id: "writer", holder: null, until: new Date(0), visible: 0, next: 1 };
  // Another process may make it at the same moment.
  await unlessDuplicate(
    run((options) =>
      writer.updateOne({ _id: "writer" }, { $setOnInsert: first }, { upsert: true, ...options }),
    ),
  );

  async function tryToTake(holder: string, ids: number): Promise<WriterLease | null> {
    const free = { $or: [{ $eq: ["$holder", null] }, { $lte: ["$until", "$$NOW"] }] };
    const taken = await run((options) =>
      writer.findOneAndUpdate(
        { _id: "writer" },
        [
          {
            $set: {
              holder: { $cond: [free, holder, "$holder"] },
              until: { $cond: [free, { $add: ["$$NOW", leaseMs] }, "$until"] },
              next: { $cond: [free, { $add: ["$next", ids] }, "$next"] },
            },
          },
        ],
        { returnDocument: "after", ...options },
      ),
    );
    if (taken === null) throw new StoreUnavailable("the document of the write lease is missing");
    if (taken.holder !== holder) return null;
    const { next, visible } = taken;
    return { holder, firstId: next - ids, lastId: next - 1, visible };
  }

  async function take(ids: number): Promise<WriterLease> {
    const holder = randomUUID();
    const end = performance.now() + leaseWaitMs;
    while (performance.now() < end) {
      const lease = await tryToTake(holder, ids);
      if (lease !== null) return lease;
      await sleepFor(5 + Math.random() * 20);
    }
    throw new StoreUnavailable("another process holds the write lease for too long");
  }

  /** Step 2: no record can appear, now or later, under ids of writes that never committed. */
  async function voidUncommitted({ visible, firstId }: WriterLease): Promise<void> {
    const now = new Date();
    for (let from = visible + 1; from < firstId; from += idsPerVoiding) {
      const to = Math.min(from + idsPerVoiding, firstId) - 1;
      const voids = Array.from({ length: to - from + 1 }, (_, at) => ({ _id: from + at, void: now }));
      await unlessDuplicate(run((options) => records.insertMany(voids, { ordered: false, ...options })));
      await run((options) =>
        records.updateMany(
          { _id: { $gte: from, $lte: to }, void: { $exists: false } },
          {
            $set: { void: now },
            $unset: { device: 1, topic: 1, text: 1, payload: 1, time: 1, weight: 1, stream: 1, sequence: 1 },
          },
          options,
        ),
      );
    }
  }

  /** Renews the lease until the returned function is called. */
  function keep({ holder }: WriterLease): () => void {
    const timer = setInterval(() => {
      run(
        (options) =>
          writer.updateOne(
            { _id: "writer", holder },
            [{ $set: { until: { $add: ["$$NOW", leaseMs] } } }],
            options,
          ),
        // The commit fails when the lease was lost.
      ).catch(() => undefined);
    }, leaseMs / 3);
    timer.unref();
    return () => clearInterval(timer);
  }

  /** Step 4. `storedId` is any record of the batch; null when there is none. */
  async function commit({ holder, lastId }: WriterLease, storedId: number | null): Promise<void> {
    const end = performance.now() + commitRetryMs;
    const tryToCommit = async (): Promise<boolean> => {
      const { matchedCount } = await run((options) =>
        writer.updateOne({ _id: "writer", holder }, { $set: { holder: null, visible: lastId } }, options),
      );
      return matchedCount === 1 || (storedId !== null && (await isCommitted(storedId)));
    };
    const isRetried = (error: unknown) => error instanceof StoreUnavailable && performance.now() < end;
    const done = await retry(tryToCommit, { firstMs: 200, longestMs: 200, isRetried }).catch((error) => {
      if (storedId === null || !(error instanceof StoreUnavailable)) throw error;
      throw new OutcomeUnknown("the database went away during a commit", { cause: error });
    });
    if (!done) throw new StoreUnavailable("the lease expired and another process took it");
  }

  /** Whether a commit was made whose reply was lost. */
  async function isCommitted(storedId: number): Promise<boolean> {
    const state = await run((options) => writer.findOne({ _id: "writer" }, options));
    if (state === null || state.visible < storedId) return false;
    // Read last: without a commit it became a void before `visible` passed it.
    const found = await run((options) =>
      records.findOne({ _id: storedId, void: { $exists: false } }, options),
    );
    return found !== null;
  }

  /** What was stored stays above `visible`. */
  async function release({ holder }: WriterLease): Promise<void> {
    await run((options) =>
      writer.updateOne({ _id: "writer", holder }, { $set: { holder: null } }, options),
    ).catch(() => undefined);
  }

  return {
    async write(ids, work) {
      const lease = await take(ids);
      const stopKeeping = keep(lease);
      try {
        let storedId: number | null = null;
        await voidUncommitted(lease);
        const result = await work({
          firstId: lease.firstId,
          noteStored(id) {
            storedId = id;
          },
        });
        await commit(lease, storedId);
        return result;
      } catch (error) {
        await release(lease);
        throw error;
      } finally {
        stopKeeping();
      }
    },
    async visible(signal) {
      const state = await store.run(signal, () => writer.findOne({ _id: "writer" }, { signal }));
      return state?.visible ?? 0;
    },
  };
}

/** Ids that are voided at a time: what one batch reserves at most. */
const idsPerVoiding = 1_000;
