import type { Clock } from "@devmesh/service-kit/clock";
import type { EventOutbox, OutboxMessage } from "@devmesh/service-kit/events/event-outbox";
import type { Logger } from "@devmesh/service-kit/logger";
import type { Semaphore } from "@devmesh/service-kit/semaphore";
import { probeWait } from "./schedule.ts";

/** Requests of a webhook at a time. */
const width = 8;
/** Longest wait of one pull, in milliseconds. */
const pollMs = 5_000;
const retryMs = 1_000;
/** How often a message that is worked on is kept from other replicas, in milliseconds. */
const extendMs = 10_000;

export interface LaneOptions {
  readonly id: string;
  readonly outbox: Pick<EventOutbox, "puller">;
  /** Shared by all lanes. */
  readonly places: Semaphore;
  /** Settles a message; the result says whether a request failed, or null where there was none. Must not reject. */
  readonly handle: (message: OutboxMessage, lane: Lane) => Promise<boolean | null>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The deliveries of one webhook by this replica: several at a time, one at a time while the receiver fails. */
export class Lane {
  readonly #options: LaneOptions;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  readonly #running = new Set<Promise<void>>();
  #failures = 0;
  #pausedUntilMs = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#ended = this.#work();
  }

  /** Begins no request for so long, in milliseconds. */
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#options.clock.monotonicMs() + ms);
  }

  /** Begins no more requests, and waits for those under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
    await Promise.all(this.#running);
  }

  async #work(): Promise<void> {
    const { id, outbox, clock, log } = this.#options;
    const { signal } = this.#stopping;
    const puller = outbox.puller(id);
    try {
      while (!signal.aborted) {
        await this.#pauseEnd();
        if (signal.aborted) break;
        const free = (probeWait(this.#failures) > 0 ? 1 : width) - this.#running.size;
        if (free <= 0) {
          await Promise.race(this.#running);
          continue;
        }
        const { messages, failure } = await puller.pull(
          { batch: free, expiresMs: pollMs, untilAny: true },
          signal,
        );
        for (const message of messages) this.#begin(message);
        if (failure !== null && !signal.aborted) {
          log.debug({ webhook: id, failure }, "the events of a webhook cannot be read");
          await clock.sleep(retryMs, signal).catch(() => undefined);
        }
      }
    } finally {
      puller.close();
    }
  }

  /** Resolves when no pause is left, or the lane stops. */
  async #pauseEnd(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    for (let ms = 1; ms > 0 && !signal.aborted; ) {
      ms = this.#pausedUntilMs - clock.monotonicMs();
      if (ms > 0) await clock.sleep(ms, signal).catch(() => undefined);
    }
  }

  #begin(message: OutboxMessage): void {
    const running = this.#attempt(message).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #attempt(message: OutboxMessage): Promise<void> {
    const { places, handle } = this.#options;
    const kept = setInterval(() => message.extend(), extendMs);
    try {
      // A request for messages may have been on its way when the pause began.
      await this.#pauseEnd();
      if (this.#stopping.signal.aborted) return message.reject(0);
      using _ = await places.acquire();
      if (this.#stopping.signal.aborted) return message.reject(0);
      const failed = await handle(message, this);
      if (failed === null) return;
      this.#failures = failed ? this.#failures + 1 : 0;
      this.pause(failed ? probeWait(this.#failures) : 0);
    } finally {
      clearInterval(kept);
    }
  }
}
