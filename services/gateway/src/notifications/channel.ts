import { type Frame, joinFrames, type StreamFormat, streamFormats } from "./frame.ts";
import type { Listener, ListenerPrincipal } from "./listener.ts";
import type { BufferedEvent } from "./replay-buffer.ts";
import type { View } from "./view.ts";

/** What the listeners of a channel have in common. */
export interface Audience {
  readonly principal: ListenerPrincipal;
  /** Whether keys in frames are redacted, as for sessions. */
  readonly isRedacted: boolean;
  /** The only device they subscribe to, a public key's own; undefined for all. */
  readonly device: string | undefined;
  /** Whether they receive records. */
  readonly data: boolean;
  /** Whether they receive changes of keys and customers. */
  readonly account: boolean;
}

/** What a channel delivers. */
type Delivery =
  | { readonly kind: "events"; readonly events: readonly BufferedEvent[] }
  | { readonly kind: "records"; readonly records: readonly Frame[] }
  | { readonly kind: "frame"; readonly frame: Frame };

/** Most deliveries that wait for an asynchronous view; beyond it the channel has a gap. */
const maxQueued = 1_000;

export interface ChannelOptions {
  readonly audience: Audience;
  readonly view: View;
  /** Counts frames sent to listeners. */
  readonly onSent: (frames: number) => void;
  readonly makeGap: () => Frame;
}

/** Listeners that receive the same frames. The view runs once for all of them, in order; deliveries wait for it. */
export class Channel {
  readonly #options: ChannelOptions;
  readonly #listeners: Readonly<Record<StreamFormat, Set<Listener>>> = {
    websocket: new Set(),
    event_stream: new Set(),
  };
  #queue: Delivery[] = [];
  #overflowed = false;
  #working: Promise<void> | null = null;

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  get audience(): Audience {
    return this.#options.audience;
  }

  get view(): View {
    return this.#options.view;
  }

  /** Resolves when all deliveries have been sent; undefined when none waits. */
  get pending(): Promise<void> | undefined {
    return this.#working ?? undefined;
  }

  add(listener: Listener): void {
    this.#listeners[listener.sink.format].add(listener);
  }

  remove(listener: Listener): void {
    this.#listeners[listener.sink.format].delete(listener);
  }

  deliver(delivery: Delivery): void {
    if (this.#working !== null) {
      if (this.#queue.length < maxQueued) this.#queue.push(delivery);
      else this.#overflowed = true;
      return;
    }
    if (this.#listeners.websocket.size + this.#listeners.event_stream.size === 0) return;
    const frames = this.#framesOf(delivery);
    if (frames instanceof Promise) this.#working = this.#work(frames);
    else this.#send(frames);
  }

  #framesOf(delivery: Delivery): readonly Frame[] | Promise<readonly Frame[]> {
    if (delivery.kind === "events") return this.view.framesOf(delivery.events);
    if (delivery.kind === "records") return this.view.recordsOf(delivery.records);
    return [delivery.frame];
  }

  async #work(first: Promise<readonly Frame[]>): Promise<void> {
    this.#send(await first);
    while (this.#queue.length > 0) {
      const deliveries = merged(this.#queue);
      this.#queue = [];
      for (const delivery of deliveries) this.#send(await this.#framesOf(delivery));
      if (this.#overflowed) this.#send([this.#options.makeGap()]);
      this.#overflowed = false;
    }
    this.#working = null;
  }

  #send(frames: readonly Frame[]): void {
    if (frames.length === 0) return;
    for (const format of streamFormats) {
      const listeners = this.#listeners[format];
      if (listeners.size === 0) continue;
      const bytes = joinFrames(frames, format);
      for (const listener of listeners) {
        listener.send(bytes);
        if (listener.ended) listeners.delete(listener);
      }
      this.#options.onSent(frames.length * listeners.size);
    }
  }
}

/** Joins adjacent events, so that a view asks once for all of them. */
function merged(deliveries: readonly Delivery[]): Delivery[] {
  const result: Delivery[] = [];
  for (const delivery of deliveries) {
    const last = result.at(-1);
    if (delivery.kind === "events" && last?.kind === "events")
      result[result.length - 1] = { kind: "events", events: [...last.events, ...delivery.events] };
    else result.push(delivery);
  }
  return result;
}
