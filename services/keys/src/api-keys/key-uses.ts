import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import type { ApiKeyStore } from "../store/api-key-store.ts";

const minuteMs = 60_000;
/** How long uses wait before they are written, in milliseconds; a crash loses as many. */
const writeDelayMs = 5_000;
/** Keys whose last minute is cached, so that a minute is written once. */
const rememberedKeys = 10_000;

/** Records when keys were used, to the minute (api.md, Keys). */
export type KeyUses = ReturnType<typeof createKeyUses>;

/** Key uses in memory, written in batches. */
export function createKeyUses(store: Pick<ApiKeyStore, "recordUses">, clock: Clock, log: Logger) {
  const minutes = new Map<string, number>();
  let waiting = new Map<string, number>();
  let cancel: (() => void) | null = null;
  let writing: Promise<void> = Promise.resolve();
  let closed = false;

  function writeSoon(): void {
    cancel ??= clock.schedule(writeDelayMs, () => {
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
      const subject = { err: error, keys: uses.length };
      if (closed) return log.warn(subject, "times of last use were lost");
      log.warn(subject, "times of last use could not be written; retrying");
      for (const { id, at } of uses) if (!waiting.has(id)) waiting.set(id, at);
      writeSoon();
    }
  }

  return {
    /** Written in a batch some seconds later. */
    note(keyId: string): void {
      const minute = Math.floor(clock.now().getTime() / minuteMs) * minuteMs;
      if (minutes.get(keyId) === minute) return;
      if (minutes.size >= rememberedKeys) minutes.clear();
      minutes.set(keyId, minute);
      waiting.set(keyId, minute);
      writeSoon();
    },
    /** Unix ms of the last use that this process noted, written or not; null when it is not cached. */
    lastOf: (keyId: string): number | null => minutes.get(keyId) ?? null,
    /** Writes what waits. */
    async close(): Promise<void> {
      closed = true;
      cancel?.();
      await writing;
      await write();
    },
  };
}
