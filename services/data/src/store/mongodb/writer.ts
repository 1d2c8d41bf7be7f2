import { randomUUID } from "node:crypto";
import { setTimeout as sleepFor } from "node:timers/promises";
import { isDuplicateKey, type MongoStore } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { OutcomeUnknown } from "../data-store.ts";
import type { Collections, WriterDocument } from "./collections.ts";
import { asWriter } from "./deadline.ts";

/** The longest wait for a turn, in milliseconds; then whoever waits is better told. */
const waitForTurnMs = 15_000;
/** How long to go on finding out whether a commit was heard, in milliseconds. */
const clearUpWithinMs = 5_000;

/** Ids for one batch. */
interface Reserved {
  readonly firstId: number;
  /** Records stored for the batch so far, by id, so that a commit whose answer was lost can be found out. */
  readonly noteStored: (id: number) => void;
}

/** Lets one batch at a time be written, over all processes, and makes it visible as a whole. */
export interface Writer {
  /**
   * Reserves `ids` record ids, does the work, and makes what it stored under them visible; when the work throws, it
   * stays invisible for ever. No other work runs meanwhile that could still have an effect. @throws StoreUnavailable
   * when it is nobody's turn for too long, or this one was taken away; OutcomeUnknown.
   */
  takeTurn<T>(ids: number, work: (reserved: Reserved) => Promise<T>): Promise<T>;
  /** The last id that is final: of the ids up to it, none will ever be stored any more. */
  visible(signal: AbortSignal): Promise<number>;
}

/** The start of a turn. */
interface Turn {
  readonly holder: string;
  readonly firstId: number;
  /** The last id of the turn. */
  readonly lastId: number;
  /** Ids up to here were final before. */
  readonly visible: number;
}

/** What a {@link Writer} needs. */
export interface WriterParts {
  readonly store: MongoStore;
  readonly collections: Collections;
  /**
   * How long a holder that says nothing keeps its turn, in milliseconds; one that is at work says so three times as
   * often.
   */
  readonly turnMs: number;
}

/**
 * Creates the document that batches take turns by, if it is missing.
 *
 * The steps of a turn, and what a crash at each leaves (ADR 18):
 * 1. One update of `writer` takes the turn when it is free or its lease of `turnMs` has expired, and advances `next`.
 *    A crash leaves unused ids.
 * 2. Ids between `visible` and the own ones belong to turns that never committed. Each gets a void, and records stored
 *    under one become voids, so that no late insert of such a turn can succeed. After a crash the next turn repeats it.
 * 3. The work. After a crash its records are above `visible`, where nobody reads them, and the next turn voids them.
 * 4. One update, which only the holder can do, advances `visible`: the commit. It fails if another turn began meanwhile.
 */
export async function createWriter({ store, collections, turnMs }: WriterParts): Promise<Writer> {
  const { writer, records } = collections;
  const first: WriterDocument = { _id: "writer", holder: null, until: new Date(0), visible: 0, next: 1 };
  await asWriter(store, (options) =>
    writer.updateOne({ _id: "writer" }, { $setOnInsert: first }, { upsert: true, ...options }),
  ).catch((error: unknown) => {
    // Another process made it at the same moment.
    if (!isDuplicateKey(error)) throw error;
  });

  async function tryToTake(holder: string, ids: number): Promise<Turn | null> {
    const free = { $or: [{ $eq: ["$holder", null] }, { $lte: ["$until", "$$NOW"] }] };
    const taken = await asWriter(store, (options) =>
      writer.findOneAndUpdate(
        { _id: "writer" },
        [
          {
            $set: {
              holder: { $cond: [free, holder, "$holder"] },
              until: { $cond: [free, { $add: ["$$NOW", turnMs] }, "$until"] },
              next: { $cond: [free, { $add: ["$next", ids] }, "$next"] },
            },
          },
        ],
        { returnDocument: "after", ...options },
      ),
    );
    if (taken === null) throw new StoreUnavailable("the document that batches take turns by is gone");
    if (taken.holder !== holder) return null;
    const { next, visible } = taken;
    return { holder, firstId: next - ids, lastId: next - 1, visible };
  }

  async function take(ids: number): Promise<Turn> {
    const holder = randomUUID();
    const end = performance.now() + waitForTurnMs;
    while (performance.now() < end) {
      const turn = await tryToTake(holder, ids);
      if (turn !== null) return turn;
      await sleepFor(5 + Math.random() * 20);
    }
    throw new StoreUnavailable("another process is writing, for too long");
  }

  /** Step 2: makes sure that nothing appears, now or later, under ids of turns that never committed. */
  async function voidUncommitted({ visible, firstId }: Turn): Promise<void> {
    const now = new Date();
    for (let from = visible + 1; from < firstId; from += idsPerVoiding) {
      const to = Math.min(from + idsPerVoiding, firstId) - 1;
      const voids = Array.from({ length: to - from + 1 }, (_, at) => ({ _id: from + at, void: now }));
      try {
        await asWriter(store, (options) => records.insertMany(voids, { ordered: false, ...options }));
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
      }
      await asWriter(store, (options) =>
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

  /** Says, as long as the work goes on, that it does. */
  function keep({ holder }: Turn): () => void {
    const timer = setInterval(() => {
      asWriter(
        store,
        (options) =>
          writer.updateOne(
            { _id: "writer", holder },
            [{ $set: { until: { $add: ["$$NOW", turnMs] } } }],
            options,
          ),
        // Unheard, it is as if the holder had died: the commit will tell.
      ).catch(() => undefined);
    }, turnMs / 3);
    timer.unref();
    return () => clearInterval(timer);
  }

  /** Step 4. `storedId` is any record of the batch; null when there is none. */
  async function commit({ holder, lastId }: Turn, storedId: number | null): Promise<void> {
    const end = performance.now() + clearUpWithinMs;
    for (;;) {
      try {
        const { matchedCount } = await asWriter(store, (options) =>
          writer.updateOne({ _id: "writer", holder }, { $set: { holder: null, visible: lastId } }, options),
        );
        if (matchedCount === 1 || (storedId !== null && (await isCommitted(storedId)))) return;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        if (performance.now() < end) {
          await sleepFor(200);
          continue;
        }
        if (storedId === null) throw error;
        throw new OutcomeUnknown("the database went away during a commit", { cause: error });
      }
      throw new StoreUnavailable("another process took over, since this one was silent for too long");
    }
  }

  /** Whether a commit was made whose answer did not arrive. */
  async function isCommitted(storedId: number): Promise<boolean> {
    const turns = await asWriter(store, (options) => writer.findOne({ _id: "writer" }, options));
    if (turns === null || turns.visible < storedId) return false;
    // Looked for last: without a commit it would have been made a void before `visible` went past it.
    const found = await asWriter(store, (options) =>
      records.findOne({ _id: storedId, void: { $exists: false } }, options),
    );
    return found !== null;
  }

  /** Lets the next one begin at once; what was stored stays above `visible`. */
  async function giveUp({ holder }: Turn): Promise<void> {
    await asWriter(store, (options) =>
      writer.updateOne({ _id: "writer", holder }, { $set: { holder: null } }, options),
    ).catch(() => undefined);
  }

  return {
    async takeTurn(ids, work) {
      const turn = await take(ids);
      const stopKeeping = keep(turn);
      try {
        let storedId: number | null = null;
        await voidUncommitted(turn);
        const result = await work({
          firstId: turn.firstId,
          noteStored(id) {
            storedId = id;
          },
        });
        await commit(turn, storedId);
        return result;
      } catch (error) {
        await giveUp(turn);
        throw error;
      } finally {
        stopKeeping();
      }
    },
    async visible(signal) {
      const turns = await store.run(signal, () => writer.findOne({ _id: "writer" }, { signal }));
      return turns?.visible ?? 0;
    },
  };
}

/** How many ids are voided at once: what one turn reserves, mostly. */
const idsPerVoiding = 1_000;
