import { randomUUID } from "node:crypto";
import { setTimeout as sleepFor } from "node:timers/promises";
import { isDuplicateKey, type MongoStore } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { IngestionTurn } from "../data-store.ts";
import type { Collections } from "./collections.ts";
import { asWriter } from "./deadline.ts";

/**
 * How long the turn of a process that says nothing lasts, in milliseconds: more than the broker's `ack_wait` (10 s) after its
 * last word, so that what it had pulled is given out again before anything newer.
 */
const turnMs = 12_500;
const renewEveryMs = 2_000;
/** How often those who wait ask, in milliseconds. */
const askEveryMs = 500;

/** Waits until it is this process's turn to pull. See {@link DataStore.awaitIngestionTurn}. */
export async function awaitIngestionTurn(
  store: MongoStore,
  { ingestion }: Collections,
  signal: AbortSignal,
): Promise<IngestionTurn> {
  const holder = randomUUID();

  /** Takes the turn, or has it for longer; whether it is ours now. */
  async function claim(): Promise<boolean> {
    const ours = {
      $or: [{ $in: ["$holder", [null, holder]] }, { $lte: ["$until", "$$NOW"] }],
    };
    const claimed = await asWriter(store, (options) =>
      ingestion.findOneAndUpdate(
        { _id: "ingestion" },
        [
          {
            $set: {
              holder: { $cond: [ours, holder, "$holder"] },
              until: { $cond: [ours, { $add: ["$$NOW", turnMs] }, "$until"] },
            },
          },
        ],
        { returnDocument: "after", ...options },
      ),
    );
    return claimed?.holder === holder;
  }

  async function makeDocument(): Promise<void> {
    const first = { _id: "ingestion", holder: null, until: new Date(0) } as const;
    await asWriter(store, (options) =>
      ingestion.updateOne({ _id: "ingestion" }, { $setOnInsert: first }, { upsert: true, ...options }),
    ).catch((error: unknown) => {
      if (!isDuplicateKey(error)) throw error;
    });
  }

  let claimedAt = performance.now();
  for (;;) {
    signal.throwIfAborted();
    claimedAt = performance.now();
    try {
      await makeDocument();
      if (await claim()) break;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
    await sleepFor(askEveryMs, undefined, { signal }).catch(() => undefined);
  }

  const lost = new AbortController();
  let claiming: Promise<void> = Promise.resolve();
  const renewing = setInterval(() => {
    const askedAt = performance.now();
    claiming = claim().then(
      (ours) => {
        if (ours) claimedAt = askedAt;
        else lost.abort(new Error("another process pulls now"));
      },
      () => undefined,
    );
  }, renewEveryMs);
  // Not only when a claim fails: a process that was stopped for a while has to notice before it pulls again.
  const checking = setInterval(() => {
    if (performance.now() - claimedAt >= turnMs - renewEveryMs)
      lost.abort(new Error("the turn to pull could not be kept: the database is away"));
  }, askEveryMs);
  return {
    lost: lost.signal,
    async end() {
      clearInterval(renewing);
      clearInterval(checking);
      await claiming;
      await asWriter(store, (options) =>
        ingestion.updateOne({ _id: "ingestion", holder }, { $set: { holder: null } }, options),
      ).catch(() => undefined);
    },
  };
}
