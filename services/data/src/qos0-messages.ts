import type { Clock } from "@devmesh/service-kit/clock";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { Ingestion } from "./ingest.ts";
import type { IncomingMessage } from "./message-check.ts";

/** How messages at QoS 0 are gathered. */
export interface Qos0Options {
  readonly ingestion: Ingestion;
  readonly clock: Clock;
  /** The most messages of one batch, and the most bytes of payloads, which one message alone may exceed. */
  readonly batch: number;
  readonly batchBytes: number;
  /** How long a message waits for others, in milliseconds. */
  readonly waitMs: number;
  /** The most messages that wait, and the most bytes of payloads; what comes beyond is dropped and counted. */
  readonly maxWaiting?: number;
  readonly maxWaitingBytes?: number;
}

/** Messages at QoS 0: the broker keeps none of them, so they wait here, in bounded memory. */
export interface Qos0Messages {
  /** Never waits and never throws. */
  add(message: IncomingMessage): void;
  /** Takes no more and stores what waits, once. */
  stop(): Promise<void>;
}

/** Wait before a batch that the store could not take is tried again, in milliseconds. */
const retryMs = 1_000;

/** Gathers messages into batches and hands them to ingestion, one batch at a time. */
export function gatherQos0Messages(options: Qos0Options): Qos0Messages {
  const {
    ingestion,
    clock,
    batch,
    batchBytes,
    waitMs,
    maxWaiting = 20_000,
    maxWaitingBytes = 32 * 1024 * 1024,
  } = options;
  let waiting: IncomingMessage[] = [];
  let bytes = 0;
  let storing: Promise<void> | null = null;
  let cancelTimer: (() => void) | null = null;
  /** Whether the store took nothing last: then the next try has its wait, however many messages come. */
  let failing = false;
  let stopped = false;

  function schedule(ms: number): void {
    if (storing !== null || cancelTimer !== null) return;
    cancelTimer = clock.schedule(ms, storeBatch);
  }

  function storeBatch(): void {
    cancelTimer?.();
    cancelTimer = null;
    if (storing !== null || waiting.length === 0) return;
    storing = settle(takeBatch()).then((stored) => {
      storing = null;
      failing = !stored;
      if (stopped || waiting.length === 0) return;
      if (!stored) schedule(retryMs);
      else if (waiting.length >= batch || bytes >= batchBytes) storeBatch();
      else schedule(waitMs);
    });
  }

  /** What has waited longest; at least one message. */
  function takeBatch(): IncomingMessage[] {
    let taken = 0;
    let weight = 0;
    for (const { payload } of waiting.slice(0, batch)) {
      weight += payload.length;
      if (taken > 0 && weight > batchBytes) break;
      taken++;
    }
    return waiting.splice(0, taken);
  }

  /** Whether the store could be asked at all. */
  async function settle(messages: IncomingMessage[]): Promise<boolean> {
    try {
      await ingestion.take(messages);
    } catch (error) {
      if (error instanceof StoreUnavailable && !stopped) {
        waiting = [...messages, ...waiting];
        return false;
      }
      ingestion.drop("overload", messages.length);
    }
    for (const { payload } of messages) bytes -= payload.length;
    return true;
  }

  return {
    add(message) {
      if (stopped || waiting.length >= maxWaiting || bytes + message.payload.length > maxWaitingBytes) {
        ingestion.drop("overload", 1);
        return;
      }
      waiting.push(message);
      bytes += message.payload.length;
      const isFull = waiting.length >= batch || bytes >= batchBytes;
      if (isFull && !failing && cancelTimer !== null && storing === null) storeBatch();
      else schedule(waitMs);
    },
    async stop() {
      stopped = true;
      cancelTimer?.();
      cancelTimer = null;
      await storing;
      while (waiting.length > 0) await settle(takeBatch());
    },
  };
}
