import type { Writable } from "node:stream";

/**
 * Resolves when a connection has taken what was written to it, or is gone; at once where nothing has to be waited
 * for.
 */
export function drained(writable: Writable): Promise<void> {
  if (!writable.writableNeedDrain || writable.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const onEither = () => {
      writable.off("drain", onEither).off("close", onEither);
      resolve();
    };
    writable.on("drain", onEither).on("close", onEither);
  });
}
