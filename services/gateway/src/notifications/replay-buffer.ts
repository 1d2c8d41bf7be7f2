import { frameOfEvent } from "@devmesh/contracts/event-frames";
import type { StreamedEvent, StreamPosition } from "@devmesh/service-kit/events/event-stream";
import { Frame } from "./frame.ts";

/** Most events kept, and most bytes of them. */
const maxEvents = 20_000;
const maxBytes = 16 * 1024 * 1024;

/** An event of the stream with its frame. */
export interface BufferedEvent {
  readonly sequence: number;
  /** Id of the device, key or customer. */
  readonly about: string;
  readonly bytes: number;
  /** Made on first use; null for an event that is no frame. */
  frame(): Frame | null;
}

/** The latest events of the stream, so that few reconnecting clients have to read the stream itself (ADR 20). */
export class ReplayBuffer {
  #events: BufferedEvent[] = [];
  #bytes = 0;
  #from = 0;
  #last = 0;
  #epoch = 0;
  #advanced = Promise.withResolvers<void>();

  /** Counts resets: 0 until the position in the stream is known, one more after each gap. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Sequence of the last event; 0 before any. */
  get last(): number {
    return this.#last;
  }

  /** Every event after this sequence is in the buffer. */
  get from(): number {
    return this.#from;
  }

  /** Resolves with the next batch or reset. */
  get advanced(): Promise<void> {
    return this.#advanced.promise;
  }

  /** Empties the buffer: the next event follows that position. */
  reset({ after }: StreamPosition): void {
    this.#events = [];
    this.#bytes = 0;
    this.#from = after;
    this.#last = after;
    this.#epoch++;
    this.#advance();
  }

  /** Adds events; ignored, with an empty result, before the first reset. */
  add(batch: readonly StreamedEvent[]): readonly BufferedEvent[] {
    if (this.#epoch === 0) return [];
    const added = batch.map(buffered);
    for (const event of added) {
      this.#events.push(event);
      this.#bytes += event.bytes;
      this.#last = event.sequence;
    }
    this.#evict();
    this.#advance();
    return added;
  }

  /** Events after a sequence that is not below {@link from}. */
  after(sequence: number): readonly BufferedEvent[] {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.sequence ?? 0) > sequence) high = middle;
      else low = middle + 1;
    }
    return this.#events.slice(low);
  }

  #advance(): void {
    this.#advanced.resolve();
    this.#advanced = Promise.withResolvers<void>();
  }

  #evict(): void {
    const { length } = this.#events;
    if (length <= maxEvents && this.#bytes <= maxBytes) return;
    // A quarter at once: shifting a long array for each event would cost more.
    let count = 0;
    while (count < length && (length - count > maxEvents * 0.75 || this.#bytes > maxBytes * 0.75)) {
      this.#bytes -= this.#events[count]?.bytes ?? 0;
      count++;
    }
    this.#from = this.#events[count - 1]?.sequence ?? this.#from;
    this.#events.splice(0, count);
  }
}

/** The event, with its frame made on first use. */
export function buffered(event: StreamedEvent): BufferedEvent {
  let frame: Frame | null | undefined;
  return {
    sequence: event.sequence,
    about: event.key,
    bytes: event.payload.length + 200,
    frame() {
      if (frame === undefined) {
        const { sequence, service, name, payload } = event;
        const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8");
        const read = frameOfEvent({ sequence, service, name, text });
        frame = read === null ? null : new Frame(read);
      }
      return frame;
    },
  };
}
