import type { RuleStore } from "./rule-store.ts";

/** Reads all rows of a kind, from memory while none has changed. */
export function readOnChange<Rows>(
  rules: Pick<RuleStore, "editionOf">,
  kind: Parameters<RuleStore["editionOf"]>[0],
  readAll: (signal: AbortSignal) => Promise<Rows>,
): (signal: AbortSignal) => Promise<Rows> {
  let known: { readonly edition: string; readonly rows: Rows } | null = null;
  return async (signal) => {
    // Read before the rows: a change in between is found the next time.
    const edition = await rules.editionOf(kind, signal);
    if (known?.edition !== edition) known = { edition, rows: await readAll(signal) };
    return known.rows;
  };
}
