import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import type { Listener } from "./listener.ts";
import type { CloseReason } from "./sink.ts";

/** How often keys are checked, in milliseconds: an ended key ends its streams within it. */
const sweepMs = 500;
/** How long a verified key is not verified again, in milliseconds. */
const ttlMs = 30_000;
/** Most keys verified at a time. */
const maxVerifying = 64;

const ended: CloseReason = { code: 1008, reason: "the key has ended" };

export interface KeyWatchOptions {
  readonly listeners: ReadonlySet<Listener>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Ends streams whose key was revoked, has expired, or cannot be verified any more. Runs until stopped. */
export class KeyWatch {
  readonly #options: KeyWatchOptions;
  #verifying = false;
  #cancel: () => void = () => undefined;

  constructor(options: KeyWatchOptions) {
    this.#options = options;
    this.#schedule();
  }

  /** Ends the streams of keys that were revoked. */
  revoke(keyIds: readonly string[]): void {
    const revoked = new Set(keyIds);
    for (const listener of this.#options.listeners)
      if (revoked.has(listener.caller.keyId)) listener.close(ended);
  }

  /** Verifies each key again, since revocations may have been missed. */
  verifyAll(): void {
    for (const listener of this.#options.listeners) listener.checkAtMs = 0;
    this.#sweep();
  }

  stop(): void {
    this.#cancel();
  }

  #schedule(): void {
    this.#cancel = this.#options.clock.schedule(sweepMs, () => {
      this.#sweep();
      this.#schedule();
    });
  }

  #sweep(): void {
    const { listeners, clock } = this.#options;
    const now = clock.now().getTime();
    const nowMs = clock.monotonicMs();
    const due: Promise<void>[] = [];
    for (const listener of listeners) {
      if (listener.ended) continue;
      if (listener.caller.expiresAtMs <= now) listener.close(ended);
      else if (listener.checkAtMs <= nowMs && !this.#verifying && due.length < maxVerifying) {
        const verification = this.#verify(listener);
        if (verification !== undefined) due.push(verification);
      }
    }
    if (due.length === 0) return;
    this.#verifying = true;
    void Promise.all(due).finally(() => {
      this.#verifying = false;
      if (due.length === maxVerifying) this.#sweep();
    });
  }

  /** Undefined where the key is in the cache. Never rejects. */
  #verify(listener: Listener): Promise<void> | undefined {
    const { clock, log } = this.#options;
    const verified = listener.caller.verifyAgain();
    if (!(verified instanceof Promise)) return undefined;
    return verified.then(
      () => {
        listener.checkAtMs = clock.monotonicMs() + ttlMs;
      },
      (error: unknown) => {
        if (isReason(error, "key_invalid")) listener.close(ended);
        else log.debug({ err: error }, "a listener's key could not be verified");
      },
    );
  }
}
