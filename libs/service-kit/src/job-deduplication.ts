import type { PulledMessage } from "./pull.ts";

/** How many finished jobs are remembered; the oldest are forgotten first. */
const remembered = 1_000;

/**
 * The jobs that one process has begun or recently finished. A broker that missed the acknowledgement delivers them
 * again.
 */
export interface JobDeduplication {
  /** Null for a job that is to be done. */
  stateOf(message: PulledMessage): "under_way" | "finished" | null;
  began(message: PulledMessage): void;
  /** `finished` is false for a job that is to be tried again. */
  ended(message: PulledMessage, finished: boolean): void;
}

/** An empty memory. */
export function createJobDeduplication(): JobDeduplication {
  const underWay = new Set<string>();
  const finished = new Set<string>();
  return {
    stateOf(message) {
      const id = idOf(message);
      if (underWay.has(id)) return "under_way";
      return finished.has(id) ? "finished" : null;
    },
    began: (message) => void underWay.add(idOf(message)),
    ended(message, isFinished) {
      const id = idOf(message);
      underWay.delete(id);
      if (!isFinished) return;
      finished.add(id);
      for (const oldest of finished) {
        if (finished.size <= remembered) break;
        finished.delete(oldest);
      }
    },
  };
}

/** The time distinguishes queues of the same name. */
function idOf({ storedAt, sequence }: PulledMessage): string {
  return `${storedAt.getTime()}-${sequence}`;
}
