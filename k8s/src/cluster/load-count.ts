/** How a request ended; `offline`: answered 409 `device_offline` at once, since its device had no connection. */
export type RequestOutcome = "done" | "offline" | Failure;

/** Why a request failed. */
interface Failure {
  readonly failed: string;
}

/** What happened to requests of one kind. */
interface KindCount {
  sent: number;
  offline: number;
  /** By the cause. */
  readonly failed: Map<string, number>;
  lastDoneMs: number;
  longestGapMs: number;
}

/** What happened in a period under load. */
export interface LoadFigures {
  readonly seconds: number;
  readonly sent: number;
  readonly offline: number;
  readonly failed: number;
  /** Longest time without a success of one kind of request, in milliseconds. */
  readonly longestGapMs: number;
  /** Such as `12 × list keys: 503 unavailable`. */
  readonly failures: readonly string[];
}

/**
 * Counts requests, by their kind, that begin within a period. A gap is the time between two successes of one kind;
 * the beginning and the end of the period count as successes.
 */
export class LoadCount {
  readonly #begunMs = performance.now();
  readonly #kinds: ReadonlyMap<string, KindCount>;
  readonly #running = new Set<Promise<void>>();

  constructor(kinds: readonly string[]) {
    const [lastDoneMs, longestGapMs] = [this.#begunMs, 0];
    this.#kinds = new Map(
      kinds.map((kind) => [kind, { sent: 0, offline: 0, failed: new Map(), lastDoneMs, longestGapMs }]),
    );
  }

  /** Counts a request that begins now. */
  add(kind: string, request: Promise<RequestOutcome>): void {
    const count = this.#kinds.get(kind);
    if (count === undefined) throw new TypeError(`no kind of request is called ${kind}`);
    count.sent++;
    const counted = request.then((outcome) => {
      if (outcome === "done") succeed(count, performance.now());
      else if (outcome === "offline") count.offline++;
      else count.failed.set(outcome.failed, (count.failed.get(outcome.failed) ?? 0) + 1);
    });
    this.#running.add(counted);
    void counted.finally(() => this.#running.delete(counted));
  }

  /** Ends the period now; resolves when all its requests have ended. */
  async end(): Promise<LoadFigures> {
    const endedMs = performance.now();
    await Promise.all(this.#running);
    const kinds = [...this.#kinds];
    for (const [, count] of kinds) succeed(count, Math.max(endedMs, count.lastDoneMs));
    const failures = kinds.flatMap(([kind, { failed }]) =>
      [...failed].map(([cause, times]) => ({ times, text: `${times} × ${kind}: ${cause}` })),
    );
    return {
      seconds: (endedMs - this.#begunMs) / 1_000,
      sent: kinds.reduce((sum, [, { sent }]) => sum + sent, 0),
      offline: kinds.reduce((sum, [, { offline }]) => sum + offline, 0),
      failed: failures.reduce((sum, { times }) => sum + times, 0),
      longestGapMs: Math.max(...kinds.map(([, { longestGapMs }]) => longestGapMs)),
      failures: failures.map(({ text }) => text),
    };
  }
}

function succeed(count: KindCount, nowMs: number): void {
  count.longestGapMs = Math.max(count.longestGapMs, nowMs - count.lastDoneMs);
  count.lastDoneMs = nowMs;
}
