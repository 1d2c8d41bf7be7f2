import type { Clock } from "@devmesh/service-kit/clock";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { BatchWriter } from "./batch-writer.ts";
import type { IncomingMessage } from "./message-check.ts";

/** How messages at QoS 0 are buffered. */
export interface Qos0Options {
  readonly writer: BatchWriter;
  readonly clock: Clock;
  /** The most messages of one batch, and the most bytes of payloads, which one message alone may exceed. */
  readonly batch: number;
  readonly batchBytes: number;
  /** How long a message waits for others, in milliseconds. */
  readonly waitMs: number;
  /** The most messages that wait, and the most bytes of payloads; beyond, the device with most of it loses messages. */
  readonly maxWaiting?: number;
  readonly maxWaitingBytes?: number;
}

/** A message that waits, or was dropped and not removed yet. */
interface WaitingMessage {
  readonly message: IncomingMessage;
  dropped: boolean;
}

/** The waiting messages of one device, oldest first. */
interface DeviceShare {
  readonly messages: Set<WaitingMessage>;
  bytes: number;
}

/** Delay before a failed batch is retried, in milliseconds. */
const retryMs = 1_000;

/** Keeps messages at QoS 0, which the broker does not, in bounded memory; writes them in batches, one at a time. */
export function gatherQos0Messages(options: Qos0Options) {
  const {
    writer,
    clock,
    batch,
    batchBytes,
    waitMs,
    maxWaiting = 20_000,
    maxWaitingBytes = 32 * 1024 * 1024,
  } = options;
  let waiting: WaitingMessage[] = [];
  /** Of `waiting`, without dropped ones. */
  let count = 0;
  /** Of all that waits or is being written. */
  let bytes = 0;
  const shares = new Map<string, DeviceShare>();
  /** The device with most of the buffer, as long as nothing changes; null when it is to be computed. */
  let heaviest: string | null = null;
  let writing: Promise<void> | null = null;
  let cancelTimer: (() => void) | null = null;
  /** Whether the last batch failed: then the next one waits, however many messages come. */
  let failing = false;
  let stopped = false;

  function schedule(ms: number): void {
    if (writing !== null || cancelTimer !== null) return;
    cancelTimer = clock.schedule(ms, writeBatch);
  }

  function writeBatch(): void {
    cancelTimer?.();
    cancelTimer = null;
    if (writing !== null || count === 0) return;
    writing = settle(takeBatch()).then((stored) => {
      writing = null;
      failing = !stored;
      if (stopped || count === 0) return;
      if (!stored) schedule(retryMs);
      else if (count >= batch || bytes >= batchBytes) writeBatch();
      else schedule(waitMs);
    });
  }

  function enter(entry: WaitingMessage): void {
    const { message } = entry;
    const device = deviceOf(message);
    const share = shares.get(device) ?? { messages: new Set(), bytes: 0 };
    shares.set(device, share);
    share.messages.add(entry);
    share.bytes += message.payload.length;
    count++;
    heaviest = null;
  }

  function leave(entry: WaitingMessage): void {
    const device = deviceOf(entry.message);
    const share = shares.get(device);
    if (share === undefined) return;
    share.messages.delete(entry);
    share.bytes -= entry.message.payload.length;
    if (share.messages.size === 0) shares.delete(device);
    count--;
    heaviest = null;
  }

  /** Drops messages of the devices that have most to make room for one; false when that is its own device. */
  function makeRoomFor(message: IncomingMessage): boolean {
    const device = deviceOf(message);
    const weight = message.payload.length;
    while (count >= maxWaiting || bytes + weight > maxWaitingBytes) {
      if (heaviest === device) return false;
      const own = shares.get(device);
      let most = partOf((own?.messages.size ?? 0) + 1, (own?.bytes ?? 0) + weight);
      heaviest = device;
      for (const [other, share] of shares) {
        const part = partOf(share.messages.size, share.bytes);
        if (other === device || part <= most) continue;
        most = part;
        heaviest = other;
      }
      const [oldest] = heaviest === device ? [] : (shares.get(heaviest)?.messages ?? []);
      if (oldest === undefined) return false;
      oldest.dropped = true;
      bytes -= oldest.message.payload.length;
      leave(oldest);
      writer.drop("overload", 1);
    }
    return true;
  }

  const partOf = (messages: number, size: number) => Math.max(messages / maxWaiting, size / maxWaitingBytes);

  /** The oldest messages, at least one. */
  function takeBatch(): WaitingMessage[] {
    const taken: WaitingMessage[] = [];
    let weight = 0;
    let end = 0;
    for (const entry of waiting) {
      if (!entry.dropped) {
        weight += entry.message.payload.length;
        if (taken.length === batch || (taken.length > 0 && weight > batchBytes)) break;
        taken.push(entry);
      }
      end++;
    }
    waiting.splice(0, end);
    for (const entry of taken) leave(entry);
    return taken;
  }

  /** False when the batch is to be retried. */
  async function settle(entries: readonly WaitingMessage[]): Promise<boolean> {
    const messages = entries.map(({ message }) => message);
    try {
      await writer.write(messages);
    } catch (error) {
      if (error instanceof StoreUnavailable && !stopped) {
        waiting = [...entries, ...waiting];
        for (const entry of entries) enter(entry);
        return false;
      }
      writer.drop("overload", messages.length);
    }
    for (const { payload } of messages) bytes -= payload.length;
    return true;
  }

  return {
    /** Never waits and never throws. */
    add(message: IncomingMessage): void {
      if (stopped || !makeRoomFor(message)) {
        writer.drop("overload", 1);
        return;
      }
      const entry = { message, dropped: false };
      // Dropped messages are removed once they are the majority.
      if (waiting.length > 2 * count + batch) waiting = waiting.filter(({ dropped }) => !dropped);
      waiting.push(entry);
      enter(entry);
      bytes += message.payload.length;
      const isFull = count >= batch || bytes >= batchBytes;
      if (isFull && !failing && cancelTimer !== null && writing === null) writeBatch();
      else schedule(waitMs);
    },
    /** Stores what waits, and takes no more. */
    async stop(): Promise<void> {
      stopped = true;
      cancelTimer?.();
      cancelTimer = null;
      await writing;
      while (count > 0) await settle(takeBatch());
    },
  };
}

/** The level of the topic that names the device. */
function deviceOf({ topicLevels }: IncomingMessage): string {
  return topicLevels[1] ?? "";
}
