import type { PulledMessage } from "./pull.ts";

/** How many finished jobs are remembered; the oldest are forgotten first. */
const remembered = 1_000;

/**
 * The jobs that one process has begun or recently finished. A broker that missed the acknowledgement delivers them
 * again.
 */
export class JobDeduplication {
  readonly #running = new Set<string>();
  readonly #finished = new Set<string>();

  /** Null for a job that is to be done. */
  stateOf(message: PulledMessage): "under_way" | "finished" | null {
    const id = idOf(message);
    if (this.#running.has(id)) return "under_way";
    return this.#finished.has(id) ? "finished" : null;
  }

  began(message: PulledMessage): void {
    this.#running.add(idOf(message));
  }

  /** `isFinished` is false for a job that is to be retried. */
  ended(message: PulledMessage, isFinished: boolean): void {
    const id = idOf(message);
    this.#running.delete(id);
    if (isFinished) this.#finished.add(id);
    const [oldest] = this.#finished;
    if (this.#finished.size > remembered && oldest !== undefined) this.#finished.delete(oldest);
  }
}

/** The time distinguishes queues of the same name. */
function idOf({ storedAt, sequence }: PulledMessage): string {
  return `${storedAt.getTime()}-${sequence}`;
}
