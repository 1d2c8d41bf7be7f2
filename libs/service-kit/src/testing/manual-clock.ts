import type { Clock } from "../clock.ts";

interface Task {
  readonly dueMs: number;
  readonly run: () => void;
}

/** A clock that a test moves. */
export class ManualClock implements Clock {
  #elapsedMs = 0;
  readonly #startedAt: number;
  readonly #tasks = new Set<Task>();

  /** `startedAt` is the wall-clock time at the start. */
  constructor(startedAt: Date = new Date("2026-01-01T00:00:00.000Z")) {
    this.#startedAt = startedAt.getTime();
  }

  now(): Date {
    return new Date(this.#startedAt + this.#elapsedMs);
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  schedule(ms: number, task: () => void): () => void {
    const entry = { dueMs: this.#elapsedMs + ms, run: task };
    this.#tasks.add(entry);
    return () => {
      this.#tasks.delete(entry);
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = this.schedule(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** How many tasks and sleeps wait; a test that expects a timer to be cleaned up asks here. */
  get pending(): number {
    return this.#tasks.size;
  }

  /** Moves time on by `ms` and runs what came due, in order; lets promises settle after each. */
  async advance(ms: number): Promise<void> {
    const target = this.#elapsedMs + ms;
    for (;;) {
      const due = [...this.#tasks]
        .filter((task) => task.dueMs <= target)
        .sort((a, b) => a.dueMs - b.dueMs)[0];
      if (due === undefined) break;
      this.#tasks.delete(due);
      this.#elapsedMs = Math.max(this.#elapsedMs, due.dueMs);
      due.run();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#elapsedMs = target;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
