import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import type { ApiKeyStore } from "./api-key-store.ts";

const minuteMs = 60_000;
/** How long uses are gathered before they are written, in milliseconds; a crash loses as much. */
const gatherMs = 5_000;
/** Keys whose minute is remembered, so that a minute is written once. */
const rememberedKeys = 10_000;

/** Notes when keys were used, to the minute (api.md, Keys). */
export interface KeyUses {
  /** Costs no write: what was noted is written together some seconds later. */
  note(keyId: string): void;
  /** Unix ms of the last use that was noted here, written or not; null where none is remembered. */
  lastOf(keyId: string): number | null;
  /** Writes what was noted and notes no more. */
  close(): Promise<void>;
}

/** Gathers uses in memory and writes them in batches. */
export function createKeyUses(store: ApiKeyStore, clock: Clock, log: Logger): KeyUses {
  const minutes = new Map<string, number>();
  let waiting = new Map<string, number>();
  let cancel: (() => void) | null = null;
  let writing: Promise<void> = Promise.resolve();
  let closed = false;

  function writeSoon(): void {
    cancel ??= clock.schedule(gatherMs, () => {
      writing = write();
    });
  }

  async function write(): Promise<void> {
    const uses = [...waiting].map(([id, at]) => ({ id, at }));
    waiting = new Map();
    cancel = null;
    if (uses.length === 0) return;
    try {
      await store.recordUses(uses, AbortSignal.timeout(minuteMs));
    } catch (error) {
      if (closed) {
        log.warn({ err: error, keys: uses.length }, "times of last use were lost");
        return;
      }
      log.warn(
        { err: error, keys: uses.length },
        "times of last use could not be written and are tried again",
      );
      for (const { id, at } of uses) if (!waiting.has(id)) waiting.set(id, at);
      writeSoon();
    }
  }

  return {
    note(keyId) {
      const minute = Math.floor(clock.now().getTime() / minuteMs) * minuteMs;
      if (minutes.get(keyId) === minute) return;
      if (minutes.size >= rememberedKeys) minutes.clear();
      minutes.set(keyId, minute);
      waiting.set(keyId, minute);
      writeSoon();
    },
    lastOf: (keyId) => minutes.get(keyId) ?? null,
    async close() {
      closed = true;
      cancel?.();
      await writing;
      await write();
    },
  };
}
