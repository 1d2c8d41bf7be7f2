import { type AlertStore, pairOf, type StoredAlert } from "../store/alert-store.ts";
import type { AlertHistory } from "./alert-states.ts";

/** Rows of a page. */
const pageSize = 1_000;

/** A rule and a device. */
export type Pair = Pick<StoredAlert, "rule_id" | "device_id">;

/** All alerts that pend or fire, by rule and device, in the replica that evaluates. */
export class OpenAlerts {
  /** By rule and device; the alert of no device is that of the device null. */
  readonly #byRule = new Map<string, Map<string | null, StoredAlert>>();

  /** Reads all, and removes those that pend beside one that fires: a process died before it could. */
  static async read(
    store: Pick<AlertStore, "listOpen" | "commit">,
    signal: AbortSignal,
  ): Promise<OpenAlerts> {
    const open = new OpenAlerts();
    for (let after = ""; ; ) {
      const page = await store.listOpen({ after, limit: pageSize }, signal);
      for (const alert of page) {
        const other = open.#byRule.get(alert.rule_id)?.get(alert.device_id);
        const [kept, stale] = other?.state === "firing" ? [other, alert] : [alert, other];
        open.#note(kept);
        if (stale !== undefined) await store.commit({ save: [], remove: [stale] }, signal);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < pageSize) return open;
      after = last.id;
    }
  }

  has(pair: Pair): boolean {
    return this.#byRule.get(pair.rule_id)?.has(pair.device_id) ?? false;
  }

  get all(): StoredAlert[] {
    return [...this.#byRule.values()].flatMap((ofRule) => [...ofRule.values()]);
  }

  ofRule(ruleId: string): StoredAlert[] {
    return [...(this.#byRule.get(ruleId)?.values() ?? [])];
  }

  /** Notes what was stored of a rule and a device. */
  set(pair: Pair, { open }: AlertHistory): void {
    if (open === null) this.#byRule.get(pair.rule_id)?.delete(pair.device_id);
    else this.#note({ ...open, revision: open.revision + 1 });
  }

  #note(alert: StoredAlert): void {
    const ofRule = this.#byRule.get(alert.rule_id) ?? new Map();
    this.#byRule.set(alert.rule_id, ofRule.set(alert.device_id, alert));
  }
}

/** What is stored of rules and devices, by {@link pairOf}. */
export async function readHistories(
  store: Pick<AlertStore, "findNewest">,
  pairs: readonly Pair[],
  signal: AbortSignal,
): Promise<Map<string, AlertHistory>> {
  const histories = new Map<string, AlertHistory>(
    pairs.map((pair) => [pairOf(pair), { open: null, cleared: null }]),
  );
  for (const alert of await store.findNewest(pairs, signal)) {
    const key = pairOf(alert);
    const { open = null, cleared = null } = histories.get(key) ?? {};
    // The newest comes first.
    if (alert.state === "cleared") histories.set(key, { open, cleared: cleared ?? alert });
    else histories.set(key, { open: alert, cleared });
  }
  return histories;
}
