import {
  type BatchedMessage,
  type BatchHeader,
  batchedBytes,
  encodeDeviceBatch,
  maxBatchBytes,
  maxBatchMessages,
} from "@devmesh/device-broker/device-batch";

/** Bytes of messages that wait for a batch; from there on sockets are not read. */
const maxQueuedBytes = 32 * 1024 * 1024;

/** A batch that is under way. It is sent again, as it is, until it is stored. */
export interface BatchInFlight<Receipt> {
  readonly header: BatchHeader;
  readonly bytes: Buffer;
  /** Of its messages, in order. */
  readonly receipts: readonly Receipt[];
}

interface QueuedMessage<Receipt> {
  readonly message: BatchedMessage;
  readonly receipt: Receipt;
  readonly bytes: number;
}

/**
 * Makes batches of the messages of one shard and kind: while one is stored, all that comes is collected, and becomes
 * the next. Exactly one is in flight, so the order of messages holds whatever fails. It needs no timer.
 */
export class BatchQueue<Receipt> {
  readonly #header: Omit<BatchHeader, "number">;
  #number = 0;
  #waiting: QueuedMessage<Receipt>[] = [];
  /** Messages of `#waiting` that are in a batch already. */
  #taken = 0;
  #queuedBytes = 0;
  #inFlight: BatchInFlight<Receipt> | null = null;

  constructor(header: Omit<BatchHeader, "number">) {
    this.#header = header;
  }

  /** Messages that wait for a batch. */
  get length(): number {
    return this.#waiting.length - this.#taken;
  }

  /** Whether nothing more should be added until messages are stored. */
  get isFull(): boolean {
    return this.#queuedBytes >= maxQueuedBytes;
  }

  get inFlight(): BatchInFlight<Receipt> | null {
    return this.#inFlight;
  }

  /** Adds a message, also beyond the bound: what was read from a socket must go somewhere. */
  add(message: BatchedMessage, receipt: Receipt): void {
    const bytes = batchedBytes(message);
    this.#waiting.push({ message, receipt, bytes });
    this.#queuedBytes += bytes;
  }

  /** The next batch to send; null while one is in flight, or for no messages. */
  take(): BatchInFlight<Receipt> | null {
    if (this.#inFlight !== null || this.length === 0) return null;
    const messages: BatchedMessage[] = [];
    const receipts: Receipt[] = [];
    let bytes = 0;
    for (let at = this.#taken; at < this.#waiting.length && messages.length < maxBatchMessages; at++) {
      const queued = this.#waiting[at];
      if (queued === undefined || (bytes > 0 && bytes + queued.bytes > maxBatchBytes)) break;
      bytes += queued.bytes;
      messages.push(queued.message);
      receipts.push(queued.receipt);
    }
    this.#taken += messages.length;
    this.#queuedBytes -= bytes;
    // Not at each batch: removing the first of many moves all others.
    if (this.#taken * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#taken);
      this.#taken = 0;
    }
    const header = { ...this.#header, number: ++this.#number };
    this.#inFlight = { header, bytes: encodeDeviceBatch({ ...header, messages }), receipts };
    return this.#inFlight;
  }

  /** The batch in flight is stored; returns the receipts of its messages. */
  stored(): readonly Receipt[] {
    const receipts = this.#inFlight?.receipts ?? [];
    this.#inFlight = null;
    return receipts;
  }
}
