import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { DataMetrics, DropReason } from "../data-metrics.ts";
import type { RecordFeed } from "../query/record-feed.ts";
import type { DataMessage, DataStore } from "../store/data-store.ts";
import { checkMessage, type IncomingMessage } from "./message-check.ts";

/** What ingestion needs. */
export interface IngestionDeps {
  readonly store: DataStore;
  readonly metrics: DataMetrics;
  readonly log: Logger;
  readonly clock: Clock;
  /** Told of each batch that was stored. */
  readonly feed: Pick<RecordFeed, "tell">;
}

/** Takes messages of devices into the store. */
export interface Ingestion {
  /**
   * Stores what can be stored of a batch and settles the rest for good: it is counted and not to be tried again. Once
   * this resolves, the batch may be acknowledged. @throws StoreUnavailable: nothing of the batch is settled, try it
   * again later.
   */
  take(batch: readonly IncomingMessage[]): Promise<void>;
  /** Counts messages that were given up before they came to {@link take}. */
  drop(reason: DropReason, messages: number): void;
  /** @throws StoreUnavailable while the store takes nothing. */
  checkStore(): Promise<void>;
}

/** One line in the log for a kind of drop, then none for this many of the kind. */
const dropsPerLogLine = 1_000;

/**
 * What failed is tried again within this time, in milliseconds, and then tells whether the store takes messages; a
 * small write of our own may still fit where a batch does not. It decides only when nothing is left to be tried.
 */
const retriedWithinMs = 30_000;

/** Ingestion into a store, one batch at a time. */
export function createIngestion({ store, metrics, log, clock, feed }: IngestionDeps): Ingestion {
  const drops = new Map<DropReason, number>();
  /** When the store last took nothing, on the monotonic clock; null since it took something. */
  let failedAt: number | null = null;
  let last: Promise<unknown> = Promise.resolve();

  function drop(reason: DropReason, messages: number, detail: object = {}): void {
    if (messages === 0) return;
    metrics.dropped.inc({ reason }, messages);
    const before = drops.get(reason) ?? 0;
    drops.set(reason, before + messages);
    const lines = (dropped: number) => Math.ceil(dropped / dropsPerLogLine);
    if (lines(before) === lines(before + messages)) return;
    log.warn({ reason, dropped: before + messages, ...detail }, "messages of devices were dropped");
  }

  async function append(messages: readonly DataMessage[]): Promise<void> {
    if (messages.length === 0) return;
    try {
      const { repeated, refused, ids } = await store.append(messages);
      failedAt = null;
      metrics.repeated.inc(repeated);
      drop("device_deleted", refused);
      const stored = messages.length - repeated - refused;
      // A batch is of one kind: what the broker keeps until it is acknowledged, or QoS 0.
      metrics.stored.inc({ qos: messages[0]?.delivery == null ? "0" : "1" }, stored);
      feed.tell(messages, ids);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      await appendEach(messages, error);
    }
  }

  /** Finds the message that the store cannot take, so that the others are stored and it is not tried for ever. */
  async function appendEach(messages: readonly DataMessage[], cause: unknown): Promise<void> {
    const [only] = messages;
    if (messages.length === 1 && only !== undefined) {
      drop("refused_by_store", 1, { device_id: only.deviceId, topic: only.topic, err: cause });
      return;
    }
    for (const message of messages) await append([message]);
  }

  async function take(batch: readonly IncomingMessage[]): Promise<void> {
    const storable: DataMessage[] = [];
    for (const message of batch) {
      const checked = checkMessage(message);
      if (typeof checked === "string")
        drop(checked, 1, { topic: message.topicLevels.join("/").slice(0, 200) });
      else storable.push(checked);
    }
    try {
      await append(storable);
    } catch (error) {
      if (failedAt === null) log.error({ err: error }, "the store takes no messages; they are tried again");
      failedAt = clock.monotonicMs();
      metrics.failed.inc();
      throw error;
    }
  }

  return {
    take(batch) {
      const turn = last.then(() => take(batch));
      last = turn.catch(() => undefined);
      return turn;
    },
    drop,
    async checkStore() {
      if (failedAt === null) return;
      if (clock.monotonicMs() - failedAt < retriedWithinMs)
        throw new StoreUnavailable("the store took no messages");
      await store.checkWritable();
      failedAt = null;
    },
  };
}
