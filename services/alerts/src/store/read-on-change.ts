import { alertBounds } from "@devmesh/contracts/model/rule";
import type { Clock } from "@devmesh/service-kit/clock";
import type { RuleStore, StoredRule } from "./rule-store.ts";

/** Returns rows as they are now, or as they were at most so many milliseconds ago. */
export type ReadOnChange<Rows> = (signal: AbortSignal, maxAgeMs?: number) => Promise<Rows>;

/** Rules beyond the bound, which a release before this one may have stored in MongoDB. */
const moreRules = 100;

/** Reads all rules, for the evaluation and the notifier. */
export function createRuleReader(
  rules: Pick<RuleStore, "editionOf" | "listRules">,
  clock: Clock,
): ReadOnChange<readonly StoredRule[]> {
  return readOnChange(
    rules,
    "rules",
    (signal) => rules.listRules({ limit: alertBounds.rules + moreRules }, signal),
    clock,
  );
}

/** Reads all rows of a kind, from memory while none has changed. */
export function readOnChange<Rows>(
  rules: Pick<RuleStore, "editionOf">,
  kind: Parameters<RuleStore["editionOf"]>[0],
  readAll: (signal: AbortSignal) => Promise<Rows>,
  clock: Clock,
): ReadOnChange<Rows> {
  let known: { readonly edition: string; readonly rows: Rows; readonly atMs: number } | null = null;
  return async (signal, maxAgeMs = 0) => {
    const atMs = clock.monotonicMs();
    if (known !== null && atMs - known.atMs < maxAgeMs) return known.rows;
    // Read before the rows: a change in between is found the next time.
    const edition = await rules.editionOf(kind, signal);
    const rows = known?.edition === edition ? known.rows : await readAll(signal);
    known = { edition, rows, atMs };
    return rows;
  };
}
