import { type BatchKind, batchKinds } from "@devmesh/contracts/mqtt";
import {
  type BatchedMessage,
  batchedBytes,
  encodeDeviceBatch,
  maxBatchBytes,
  maxBatchMessages,
} from "@devmesh/device-broker/device-batch";
import { publishLiveBatch, publishReply, storeBatch } from "@devmesh/device-broker/device-front";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Logger } from "@devmesh/service-kit/logger";
import { retry } from "@devmesh/service-kit/retry";
import { BatchQueue } from "../batches/batch-queue.ts";
import type { Publication } from "../session/effect.ts";

/** The one shard there is: its number is in subjects and frames, so that there can be more. */
const shard = 0;

/** Waits before a batch is sent again, in milliseconds. */
const retryFirstMs = 100;
const retryLongestMs = 1_000;

/** The consumer of a stored message. */
export interface MessageReceipt {
  /** The message is stored. */
  stored(): void;
}

interface KindOfBatch {
  readonly kind: BatchKind;
  readonly queue: BatchQueue<MessageReceipt>;
  isSending: boolean;
  live: BatchedMessage[];
  liveBytes: number;
  liveNumber: number;
}

/** Options of a {@link MessagePublisher}. */
export interface MessagePublisherOptions {
  readonly bus: Bus;
  readonly log: Logger;
  /** New each time that the front starts. */
  readonly bootId: bigint;
  /** Sockets may be read again. */
  readonly onRoom: () => void;
  /** Batches in flight are not sent again once it aborts. */
  readonly signal: AbortSignal;
}

/**
 * Sends what devices publish into the mesh: at QoS 1 and 2 in stored batches, of which each kind has one in flight; at
 * QoS 0 in batches that nobody keeps; and replies to the replica that waits for them.
 */
export class MessagePublisher {
  readonly #options: MessagePublisherOptions;
  readonly #kinds: ReadonlyMap<BatchKind, KindOfBatch>;
  #isFlushing = false;
  #wasFull = false;

  constructor(options: MessagePublisherOptions) {
    this.#options = options;
    const header = { shard, front: options.bus.replicaId, bootId: options.bootId };
    this.#kinds = new Map(
      batchKinds.map((kind) => {
        const queue = new BatchQueue<MessageReceipt>(header);
        return [kind, { kind, queue, isSending: false, live: [], liveBytes: 0, liveNumber: 0 }];
      }),
    );
  }

  /** False while so much waits to be stored that no further sockets should be read. */
  get hasRoom(): boolean {
    for (const { queue } of this.#kinds.values()) if (queue.isFull) return false;
    return true;
  }

  /** Whether nothing waits to be stored. */
  get isIdle(): boolean {
    for (const { queue } of this.#kinds.values())
      if (queue.inFlight !== null || queue.length > 0) return false;
    return true;
  }

  /** Sends a message at once or with others; `receipt` is used at QoS 1 and 2. */
  publish(
    deviceId: string,
    publication: Publication,
    isWill: boolean,
    receivedAt: number,
    receipt: MessageReceipt,
  ): void {
    const { topic, payload, qos, retain, dup, destination } = publication;
    const message: BatchedMessage = { deviceId, topic, payload, receivedAt, qos, retain, dup, will: isWill };
    if (destination.to === "replica") {
      publishReply(this.#options.bus, destination.replica, this.#batchOf([message], 0));
      if (qos > 0) receipt.stored();
      return;
    }
    const kind = this.#kinds.get(destination.kind);
    if (kind === undefined) return;
    if (qos > 0) {
      kind.queue.add(message, receipt);
      this.#wasFull ||= kind.queue.isFull;
    } else this.#addLive(kind, message);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => this.#flush());
  }

  #addLive(kind: KindOfBatch, message: BatchedMessage): void {
    const bytes = batchedBytes(message);
    const isFull = kind.live.length >= maxBatchMessages || kind.liveBytes + bytes > maxBatchBytes;
    if (isFull && kind.live.length > 0) this.#flushLive(kind);
    kind.live.push(message);
    kind.liveBytes += bytes;
  }

  #flush(): void {
    this.#isFlushing = false;
    for (const kind of this.#kinds.values()) {
      this.#flushLive(kind);
      void this.#sendBatches(kind);
    }
  }

  #flushLive(kind: KindOfBatch): void {
    if (kind.live.length === 0) return;
    publishLiveBatch(this.#options.bus, shard, kind.kind, this.#batchOf(kind.live, ++kind.liveNumber));
    kind.live = [];
    kind.liveBytes = 0;
  }

  #batchOf(messages: readonly BatchedMessage[], number: number): Buffer {
    const { bus, bootId } = this.#options;
    return encodeDeviceBatch({ shard, front: bus.replicaId, bootId, number, messages });
  }

  async #sendBatches(kind: KindOfBatch): Promise<void> {
    if (kind.isSending) return;
    kind.isSending = true;
    const { bus, log, signal } = this.#options;
    try {
      for (let batch = kind.queue.take(); batch !== null; batch = kind.queue.take()) {
        const sending = batch;
        await retry(() => storeBatch(bus, kind.kind, sending), {
          firstMs: retryFirstMs,
          longestMs: retryLongestMs,
          signal,
          isRetried(error) {
            log.debug({ err: error, kind: kind.kind }, "a batch of messages is sent again");
            return true;
          },
        });
        for (const receipt of kind.queue.stored()) receipt.stored();
        if (!this.#wasFull || !this.hasRoom) continue;
        this.#wasFull = false;
        this.#options.onRoom();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      kind.isSending = false;
    }
  }
}
