import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import type { Listener } from "./listener.ts";
import type { Farewell } from "./sink.ts";

/** How often keys are looked at, in milliseconds: one that has ended ends its streams within it. */
const sweepMs = 500;
/** A key that was verified anew is not looked at again for this long, in milliseconds. */
const verifiedForMs = 30_000;
/** Most keys verified at a time. */
const maxVerifying = 64;

const ended: Farewell = { code: 1008, reason: "the key has ended" };

/** What a key watch works with. */
export interface KeyWatchParts {
  /** Those who listen now. */
  readonly listeners: ReadonlySet<Listener>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Ends streams whose key was revoked, has expired, or stands for nobody any more. */
export class KeyWatch {
  readonly #parts: KeyWatchParts;
  #verifying = false;
  #cancel: () => void = () => undefined;

  /** Watches until stopped. */
  constructor(parts: KeyWatchParts) {
    this.#parts = parts;
    this.#schedule();
  }

  /** Ends the streams of keys that were revoked. */
  revoke(keyIds: readonly string[]): void {
    const revoked = new Set(keyIds);
    for (const listener of this.#parts.listeners) {
      if (revoked.has(listener.caller.keyId)) listener.close(ended);
    }
  }

  /** Looks at each key anew, since revocations may have been missed. */
  lookAgain(): void {
    for (const listener of this.#parts.listeners) listener.checkAtMs = 0;
    this.#sweep();
  }

  stop(): void {
    this.#cancel();
  }

  #schedule(): void {
    this.#cancel = this.#parts.clock.schedule(sweepMs, () => {
      this.#sweep();
      this.#schedule();
    });
  }

  #sweep(): void {
    const { listeners, clock, log } = this.#parts;
    const now = clock.now().getTime();
    const nowMs = clock.monotonicMs();
    const unknown: { readonly listener: Listener; readonly verifying: Promise<unknown> }[] = [];
    for (const listener of listeners) {
      if (listener.ended) continue;
      if (listener.caller.expiresAtMs <= now) listener.close(ended);
      else if (listener.checkAtMs <= nowMs && !this.#verifying && unknown.length < maxVerifying) {
        const verifying = verifyAgain(listener);
        if (verifying !== undefined) unknown.push({ listener, verifying });
      }
    }
    if (unknown.length === 0) return;
    this.#verifying = true;
    const settled = unknown.map(async ({ listener, verifying }) => {
      try {
        await verifying;
        listener.checkAtMs = clock.monotonicMs() + verifiedForMs;
      } catch (error) {
        if (isReason(error, "key_invalid")) listener.close(ended);
        else log.debug({ err: error }, "a listener's key could not be verified");
      }
    });
    void Promise.all(settled).finally(() => {
      this.#verifying = false;
      // More may be due than were verified at a time.
      if (unknown.length === maxVerifying) this.#sweep();
    });
  }
}

/** Undefined where the key is remembered and stands. */
function verifyAgain({ caller }: Listener): Promise<unknown> | undefined {
  try {
    const found = caller.verifyAgain();
    return found instanceof Promise ? found : undefined;
  } catch (error) {
    return Promise.reject(error instanceof Error ? error : new Error(String(error)));
  }
}
