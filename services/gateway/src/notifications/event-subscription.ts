import type { StreamedEvent, StreamPosition } from "@devmesh/service-kit/event-stream";
import { type RecentEvent, RecentEvents } from "./replay-buffer.ts";

/** How far this gateway has heard the stream of events, and the last of it. */
export class HeardEvents {
  #recent: RecentEvents | null = null;
  #advanced = Promise.withResolvers<void>();

  /** The last events; null until it is known where the stream stands, and others from the beginning after a gap. */
  get recent(): RecentEvents | null {
    return this.#recent;
  }

  /** The last sequence known; 0 before any. */
  get position(): number {
    return this.#recent?.last ?? 0;
  }

  /** Resolves with what is heard next. */
  get advanced(): Promise<void> {
    return this.#advanced.promise;
  }

  /** Begins anew behind a position. */
  begin({ after }: StreamPosition): void {
    this.#recent = new RecentEvents(after);
    this.#advance();
  }

  /** Remembers what happened; none of it while it is not known where the stream stands. */
  add(batch: readonly StreamedEvent[]): readonly RecentEvent[] {
    const events = this.#recent?.add(batch) ?? [];
    this.#advance();
    return events;
  }

  #advance(): void {
    this.#advanced.resolve();
    this.#advanced = Promise.withResolvers<void>();
  }
}
