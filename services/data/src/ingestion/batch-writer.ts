import { DeviceId } from "@devmesh/contracts/model/device-id";
import type { ReportDiagnosis } from "@devmesh/device-broker/diagnosis-reporter";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { DataMetrics } from "../data-metrics.ts";
import type { DataMessage, DataStore } from "../store/data-store.ts";
import { checkMessage, type IncomingMessage, type Unstorable } from "./message-check.ts";
import type { RecordFeed } from "./record-feed.ts";

/** Options of {@link createBatchWriter}. */
export interface BatchWriterOptions {
  readonly store: DataStore;
  readonly metrics: DataMetrics;
  readonly report: ReportDiagnosis;
  readonly log: Logger;
  readonly clock: Clock;
  /** Gets each batch that was stored. */
  readonly feed: Pick<RecordFeed, "publish">;
}

/** Writes messages of devices into the store. */
export type BatchWriter = ReturnType<typeof createBatchWriter>;

/** Why a message was not stored. */
type DropReason = Unstorable | "device_deleted" | "refused_by_store" | "overload";

/** Drops of one reason for each line in the log. */
const dropsPerLogLine = 1_000;

/**
 * Failed batches are retried within this time, in milliseconds, which shows whether the store works. Only then
 * `checkStore` writes itself: a small write may succeed where a batch does not.
 */
const retriedWithinMs = 30_000;

/** Writes one batch at a time. */
export function createBatchWriter({ store, metrics, report, log, clock, feed }: BatchWriterOptions) {
  const drops = new Map<DropReason, number>();
  /** When the store last failed, in monotonic milliseconds; null after a success. */
  let failedAt: number | null = null;
  let last: Promise<unknown> = Promise.resolve();

  /** Counts messages that are dropped, also before they are written. */
  function drop(reason: DropReason, messages: number, detail: object = {}): void {
    if (messages === 0) return;
    metrics.dropped.inc({ reason }, messages);
    const before = drops.get(reason) ?? 0;
    drops.set(reason, before + messages);
    const lines = (dropped: number) => Math.ceil(dropped / dropsPerLogLine);
    if (lines(before) === lines(before + messages)) return;
    log.warn({ reason, dropped: before + messages, ...detail }, "messages of devices were dropped");
  }

  function reportRefused(topicLevels: readonly string[], reason: DropReason): void {
    const id = DeviceId.safeParse(topicLevels[1]);
    if (id.success)
      report({ id: id.data, name: "publication_refused", reason, topic: topicLevels.join("/") });
  }

  async function append(messages: readonly DataMessage[]): Promise<void> {
    if (messages.length === 0) return;
    try {
      const { repeated, refused, ids } = await store.append(messages);
      failedAt = null;
      metrics.repeated.inc(repeated);
      drop("device_deleted", refused);
      const stored = messages.length - repeated - refused;
      // A batch holds either QoS 0 alone or none of it.
      metrics.stored.inc({ qos: messages[0]?.delivery == null ? "0" : "1" }, stored);
      feed.publish(messages, ids);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      await appendEach(messages, error);
    }
  }

  /** Drops the messages that the store cannot take and stores the others. */
  async function appendEach(messages: readonly DataMessage[], cause: unknown): Promise<void> {
    const [only] = messages;
    if (messages.length === 1 && only !== undefined) {
      drop("refused_by_store", 1, { device_id: only.deviceId, topic: only.topic, err: cause });
      reportRefused(only.topic.split("/"), "refused_by_store");
      return;
    }
    for (const message of messages) await append([message]);
  }

  async function write(batch: readonly IncomingMessage[]): Promise<void> {
    const storable: DataMessage[] = [];
    for (const message of batch) {
      const checked = checkMessage(message);
      if (typeof checked === "string") {
        drop(checked, 1, { topic: message.topicLevels.join("/").slice(0, 200) });
        reportRefused(message.topicLevels, checked);
      } else storable.push(checked);
    }
    try {
      await append(storable);
    } catch (error) {
      if (failedAt === null) log.error({ err: error }, "the store takes no messages; they are retried");
      failedAt = clock.monotonicMs();
      metrics.failed.inc();
      throw error;
    }
  }

  return {
    /**
     * Stores what can be stored of a batch, drops and counts the rest; then the batch may be acknowledged.
     * @throws StoreUnavailable when the whole batch is to be tried again
     */
    write(batch: readonly IncomingMessage[]): Promise<void> {
      const written = last.then(() => write(batch));
      last = written.catch(() => undefined);
      return written;
    },
    drop,
    /** @throws StoreUnavailable while the store takes nothing. */
    async checkStore(): Promise<void> {
      if (failedAt === null) return;
      if (clock.monotonicMs() - failedAt < retriedWithinMs)
        throw new StoreUnavailable("the store took no messages");
      await store.checkWritable();
      failedAt = null;
    },
  };
}
