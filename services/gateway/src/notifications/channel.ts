import { type Frame, joinFrames, type StreamFormat } from "./frame.ts";
import type { Listener, ListenerPrincipal } from "./listener.ts";
import type { RecentEvent } from "./replay-buffer.ts";
import type { View } from "./view.ts";

/** What the listeners of a channel have in common. */
export interface Audience {
  readonly principal: ListenerPrincipal;
  /** The one device that they hear of, a public key's own; undefined for all. */
  readonly device: string | undefined;
  /** Whether they hear of records. */
  readonly data: boolean;
  /** Whether they hear of keys and customers. */
  readonly account: boolean;
}

/** Something that happened, on its way to the listeners of a channel. */
type Happening =
  | { readonly kind: "events"; readonly events: readonly RecentEvent[] }
  | { readonly kind: "records"; readonly records: readonly Frame[] }
  | { readonly kind: "frame"; readonly frame: Frame };

/** Most that may wait for a view to be asked for; beyond it, the channel has a gap. */
const maxWaiting = 1_000;

/**
 * Listeners who see the same. What happens is looked at once for all of them, in its order: a view that has to ask is
 * waited for, and what happens meanwhile waits behind it.
 */
export class Channel {
  readonly audience: Audience;
  readonly view: View;
  readonly #listeners: Readonly<Record<StreamFormat, Set<Listener>>> = {
    websocket: new Set(),
    event_stream: new Set(),
  };
  readonly #sent: (frames: number) => void;
  readonly #lost: () => Frame;
  #waiting: Happening[] = [];
  #overflowed = false;
  #working: Promise<void> | null = null;

  /** `sent` counts frames that went to listeners; `lost` makes the frame that tells of a gap. */
  constructor(audience: Audience, view: View, sent: (frames: number) => void, lost: () => Frame) {
    this.audience = audience;
    this.view = view;
    this.#sent = sent;
    this.#lost = lost;
  }

  get size(): number {
    return this.#listeners.websocket.size + this.#listeners.event_stream.size;
  }

  /** Undefined when all that was told has gone to the listeners; otherwise resolves when it has. */
  get unsettled(): Promise<void> | undefined {
    return this.#working ?? undefined;
  }

  add(listener: Listener): void {
    this.#listeners[listener.outlet.format].add(listener);
  }

  remove(listener: Listener): void {
    this.#listeners[listener.outlet.format].delete(listener);
  }

  tell(happening: Happening): void {
    if (this.size === 0 && this.#working === null) return;
    if (this.#working !== null) {
      if (this.#waiting.length < maxWaiting) this.#waiting.push(happening);
      else this.#overflowed = true;
      return;
    }
    const frames = this.#look(happening);
    if (frames instanceof Promise) this.#working = this.#work(frames);
    else this.#send(frames);
  }

  #look(happening: Happening): readonly Frame[] | Promise<readonly Frame[]> {
    if (happening.kind === "events") return this.view.framesOf(happening.events);
    if (happening.kind === "records") return this.view.recordsOf(happening.records);
    return [happening.frame];
  }

  async #work(first: Promise<readonly Frame[]>): Promise<void> {
    this.#send(await first);
    while (this.#waiting.length > 0) {
      const happenings = merged(this.#waiting);
      this.#waiting = [];
      for (const happening of happenings) this.#send(await this.#look(happening));
      if (this.#overflowed) this.#send([this.#lost()]);
      this.#overflowed = false;
    }
    this.#working = null;
  }

  #send(frames: readonly Frame[]): void {
    if (frames.length === 0) return;
    for (const format of ["websocket", "event_stream"] as const) {
      const listeners = this.#listeners[format];
      if (listeners.size === 0) continue;
      const bytes = joinFrames(frames, format);
      for (const listener of listeners) {
        listener.send(bytes);
        if (listener.ended) listeners.delete(listener);
      }
      this.#sent(frames.length * listeners.size);
    }
  }
}

/** Events that follow each other in one piece, so that a view looks at them together. */
function merged(happenings: readonly Happening[]): Happening[] {
  const result: Happening[] = [];
  for (const happening of happenings) {
    const last = result.at(-1);
    if (happening.kind === "events" && last?.kind === "events")
      result[result.length - 1] = { kind: "events", events: [...last.events, ...happening.events] };
    else result.push(happening);
  }
  return result;
}
