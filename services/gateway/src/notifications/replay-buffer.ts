import type { StreamedEvent } from "@devmesh/service-kit/event-stream";
import { frameOf } from "./event-frames.ts";
import type { Frame } from "./frame.ts";

/** Most events kept for listeners that come back soon, and most bytes of them. */
const maxEvents = 20_000;
const maxBytes = 16 * 1024 * 1024;

/** An event and, once somebody listens, the frame it is. */
export interface RecentEvent {
  readonly sequence: number;
  readonly service: string;
  readonly name: string;
  /** What the event is about, such as a device id. */
  readonly about: string;
  /** Made when it is first asked for; null for an event that is no frame. */
  frame(): Frame | null;
}

/** The last events of the stream, in the memory of this gateway, so that few of those who come back need the stream. */
export class RecentEvents {
  readonly #events: (RecentEvent & { readonly bytes: number })[] = [];
  #bytes = 0;
  /** Everything behind this sequence is here. */
  #from: number;
  #last: number;

  /** Begins behind that sequence of the stream. */
  constructor(after: number) {
    this.#from = after;
    this.#last = after;
  }

  /** The last sequence seen. */
  get last(): number {
    return this.#last;
  }

  /** Whoever has read up to here finds all that follows in {@link behind}. */
  get from(): number {
    return this.#from;
  }

  add(events: readonly StreamedEvent[]): readonly RecentEvent[] {
    const added = events.map(remembered);
    for (const event of added) {
      this.#events.push(event);
      this.#bytes += event.bytes;
      this.#last = event.sequence;
    }
    this.#forget();
    return added;
  }

  /** Events behind a sequence that is not below {@link from}. */
  behind(sequence: number): readonly RecentEvent[] {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.sequence ?? 0) > sequence) high = middle;
      else low = middle + 1;
    }
    return this.#events.slice(low);
  }

  #forget(): void {
    if (this.#events.length <= maxEvents && this.#bytes <= maxBytes) return;
    // A good part at once: to shift a long array for each event would cost more than what it keeps.
    let count = 0;
    while (
      count < this.#events.length &&
      (this.#events.length - count > maxEvents * 0.75 || this.#bytes > maxBytes * 0.75)
    ) {
      this.#bytes -= this.#events[count]?.bytes ?? 0;
      count++;
    }
    for (const event of this.#events.splice(0, count)) this.#from = event.sequence;
  }
}

/** The event with its frame made on demand. */
export function remembered(event: StreamedEvent): RecentEvent & { readonly bytes: number } {
  let frame: Frame | null | undefined;
  return {
    sequence: event.sequence,
    service: event.service,
    name: event.name,
    about: event.key,
    bytes: event.payload.length + 200,
    frame() {
      if (frame === undefined) frame = frameOf(event);
      return frame;
    },
  };
}
