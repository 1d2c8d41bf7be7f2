import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { repeat } from "@devmesh/service-kit/retry";
import type { ExecutionStore } from "../store/execution-store.ts";

/** How long a lease lasts without renewal, and how often it is renewed, in milliseconds. */
const leaseMs = 15_000;
const renewEveryMs = 4_000;

/** So long before its end a lease counts as lost: what is begun then may last a moment. */
const marginMs = 3_000;

export interface LeadershipOptions {
  readonly store: Pick<ExecutionStore, "lease" | "release">;
  /** Unique among replicas and their starts. */
  readonly holder: string;
  /** Runs when this replica begins to lead. */
  readonly onLead: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Which replica sends: limits depend on it, correctness on the compare-and-set of each execution alone. */
export interface Leadership {
  readonly leads: boolean;
  /** Gives the lease up, so that another replica leads at once. */
  stop(): Promise<void>;
}

/** Takes the lease of the store whenever it is free, and renews it. */
export function createLeadership(options: LeadershipOptions): Leadership {
  const { store, holder, onLead, clock, log } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  let untilMs = Number.NEGATIVE_INFINITY;

  async function renew(): Promise<void> {
    const askedMs = clock.monotonicMs();
    const wasLeading = askedMs < untilMs;
    const holds = await store.lease(
      holder,
      leaseMs,
      AbortSignal.any([signal, AbortSignal.timeout(renewEveryMs)]),
    );
    untilMs = holds ? askedMs + leaseMs - marginMs : Number.NEGATIVE_INFINITY;
    if (!holds || wasLeading) return;
    log.info("this replica sends");
    onLead();
  }

  const renewing = repeat(renew, {
    everyMs: renewEveryMs,
    onFailure: (err) => log.warn({ err }, "the lease of the sender was not renewed"),
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
      await store.release(holder, AbortSignal.timeout(renewEveryMs)).catch((err: unknown) => {
        log.warn({ err }, "the lease of the sender ends by its time");
      });
    },
  };
}
