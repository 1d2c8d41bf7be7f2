import { setTimeout as sleep } from "node:timers/promises";
import { type BackOffLimits, backOff } from "./back-off.ts";
import { messageOf } from "./errors.ts";

/** A process that is up. */
export interface RunningProcess {
  readonly pid: number;
  /** Resolves when it has ended, with how, as the end of a sentence: "was killed (SIGKILL)". Never rejects. */
  readonly ended: Promise<string>;
  /** Sends SIGTERM, and SIGKILL when it has not ended after `graceMs`. */
  end(graceMs: number): Promise<void>;
}

/** A part of the mesh that is kept running. */
export interface SupervisedPart<P extends RunningProcess> {
  /** As the user knows it: `keys`, `nats-server`. */
  readonly name: string;
  /**
   * Starts it and resolves when it is ready. When it fails or the signal fires, nothing of it is left and the promise
   * rejects.
   */
  start(signal: AbortSignal): Promise<P>;
  /** The waits before it is started again. */
  readonly backOff: BackOffLimits;
}

/** What the supervision reports. */
export interface SupervisionReport {
  /** For the user: a sentence that names the part. */
  log(sentence: string): void;
  /** Called when the running process is another one, or none for the time being. */
  changed(): void;
}

/** Keeps one part of the mesh running until it is stopped. */
export interface Supervision<P extends RunningProcess> {
  /** The process that runs and is ready now; null between two. */
  current(): P | null;
  /** Ends it for good; safe to call at any time. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts a part and, whenever it dies from then on, starts it again with back-off, without end. Rejects when the first
 * start fails, or when `signal` fires during it; after that, failures are only reported.
 */
export async function supervise<P extends RunningProcess>(
  part: SupervisedPart<P>,
  report: SupervisionReport,
  signal: AbortSignal,
): Promise<Supervision<P>> {
  const stopping = new AbortController();
  const waits = backOff(part.backOff);
  let lastGraceMs = 0;
  let running: P | null = await part.start(AbortSignal.any([signal, stopping.signal]));
  waits.up(performance.now());

  async function startAgain(why: string): Promise<P | null> {
    let reason = why;
    while (!stopping.signal.aborted) {
      const waitMs = waits.next(performance.now());
      const when = waitMs === 0 ? "at once" : `in ${waitMs / 1_000} s`;
      report.log(`${part.name} ${reason}; it is started again ${when}.`);
      try {
        await sleep(waitMs, undefined, { signal: stopping.signal });
        return await part.start(stopping.signal);
      } catch (error) {
        reason = messageOf(error);
      }
    }
    return null;
  }

  async function watch() {
    while (running) {
      const how = await running.ended;
      running = null;
      if (stopping.signal.aborted) return;
      report.changed();
      running = await startAgain(how);
      if (!running) return;
      if (stopping.signal.aborted) return await running.end(lastGraceMs);
      waits.up(performance.now());
      report.changed();
      report.log(`${part.name} is ready again.`);
    }
  }

  const watching = watch();
  return {
    current: () => running,
    async stop(graceMs) {
      lastGraceMs = graceMs;
      stopping.abort();
      await running?.end(graceMs);
      await watching;
    },
  };
}
