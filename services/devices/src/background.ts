import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { retry } from "@devmesh/service-kit/retry";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import { RunningTasks } from "@devmesh/service-kit/running-tasks";

/**
 * Work that no call waits for. It ends when `signal` aborts, at the stop of the service; operations in the store are
 * resumed at the next start.
 */
export class Background {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly #log: Logger;
  readonly #running = new RunningTasks();

  constructor(options: { readonly clock: Clock; readonly signal: AbortSignal; readonly log: Logger }) {
    this.clock = options.clock;
    this.signal = options.signal;
    this.#log = options.log;
  }

  /** Starts work; a failure is logged under `what`. */
  run(what: string, work: () => Promise<void>): void {
    if (this.signal.aborted) return;
    this.#running.add(
      work().catch((error: unknown) => {
        if (!this.signal.aborted) this.#log.error({ err: error }, `${what} failed`);
      }),
    );
  }

  /**
   * Tries until it succeeds, with growing pauses; each attempt is a call of at most `timeoutMs`. Rejects at the stop.
   */
  retry<T>(what: string, timeoutMs: number, attempt: (call: CallContext) => Promise<T>): Promise<T> {
    const { clock, signal } = this;
    const attemptOnce = async () => {
      using call = createCallContext({ timeoutMs, signal, clock });
      return await attempt(call);
    };
    return retry(attemptOnce, {
      firstMs: 250,
      longestMs: 5_000,
      isRetried: (error) => {
        this.#log.warn({ err: error }, `${what} failed and is tried again`);
        return true;
      },
      clock,
      signal,
    });
  }

  /** Resolves when nothing runs any more; does not end it. */
  settled(): Promise<void> {
    return this.#running.settled();
  }
}
