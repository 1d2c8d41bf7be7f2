import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";
import { repeat } from "./retry.ts";

/** How long a lease lasts without renewal, and how often it is renewed, in milliseconds. */
const leaseMs = 15_000;
const renewEveryMs = 4_000;

/** So long before its end a lease counts as lost: what is begun then may last a moment. */
const marginMs = 3_000;

export interface LeadershipOptions {
  /** Leases of the store that the replicas share. */
  readonly leases: {
    lease(name: string, holder: string, forMs: number, signal: AbortSignal): Promise<boolean>;
    release(name: string, holder: string, signal: AbortSignal): Promise<void>;
  };
  /** The lease, unique in the store. */
  readonly name: string;
  /** Unique among replicas and their starts. */
  readonly holder: string;
  /** Runs when this replica begins to lead. */
  readonly onLead: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Which replica leads. Two may for a moment, as when a process was suspended: what each writes must be correct then,
 * too.
 */
export interface Leadership {
  readonly leads: boolean;
  /** Gives the lease up, so that another replica leads at once. */
  stop(): Promise<void>;
}

/** Takes a lease whenever it is free, and renews it. */
export function createLeadership(options: LeadershipOptions): Leadership {
  const { leases, name, holder, onLead, clock, log } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  let untilMs = Number.NEGATIVE_INFINITY;

  async function renew(): Promise<void> {
    const askedMs = clock.monotonicMs();
    const wasLeading = askedMs < untilMs;
    const holds = await leases.lease(
      name,
      holder,
      leaseMs,
      AbortSignal.any([signal, AbortSignal.timeout(renewEveryMs)]),
    );
    untilMs = holds ? askedMs + leaseMs - marginMs : Number.NEGATIVE_INFINITY;
    if (!holds || wasLeading) return;
    log.info({ lease: name }, "this replica leads");
    onLead();
  }

  const renewing = repeat(renew, {
    everyMs: renewEveryMs,
    onFailure: (err) => log.warn({ err, lease: name }, "the lease was not renewed"),
    clock,
    signal,
  });

  return {
    get leads() {
      return clock.monotonicMs() < untilMs && !signal.aborted;
    },
    async stop() {
      stopping.abort(new Error("the service stops"));
      await renewing;
      untilMs = Number.NEGATIVE_INFINITY;
      await leases.release(name, holder, AbortSignal.timeout(renewEveryMs)).catch((err: unknown) => {
        log.warn({ err, lease: name }, "the lease ends by its time");
      });
    },
  };
}
