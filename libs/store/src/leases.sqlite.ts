import type { Leases } from "./leases.ts";
import { unlessAborted } from "./sqlite.ts";

/** Leases in memory: one process alone has the file open, so they end with it. */
export function createSqliteLeases(nowMs: () => number = () => performance.now()): Leases {
  const leases = new Map<string, { readonly holder: string; readonly until: number }>();
  return {
    lease: unlessAborted((name, holder, forMs) => {
      const now = nowMs();
      const found = leases.get(name);
      if (found !== undefined && found.holder !== holder && found.until > now) return false;
      leases.set(name, { holder, until: now + forMs });
      return true;
    }),
    release: unlessAborted((name, holder) => {
      if (leases.get(name)?.holder === holder) leases.delete(name);
    }),
  };
}
