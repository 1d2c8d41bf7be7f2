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
  /** How many alerts a device has. */
  readonly #ofDevice = new Map<string | null, number>();

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

  /** Whether any rule has an alert of the device. */
  hasDevice(deviceId: string): boolean {
    return this.#ofDevice.has(deviceId);
  }

  get all(): StoredAlert[] {
    return [...this.#byRule.values()].flatMap((ofRule) => [...ofRule.values()]);
  }

  ofRule(ruleId: string): StoredAlert[] {
    return [...(this.#byRule.get(ruleId)?.values() ?? [])];
  }

  /** Notes what was stored of a rule and a device. */
  set({ rule_id, device_id }: Pair, { open }: AlertHistory): void {
    if (open !== null) this.#note({ ...open, revision: open.revision + 1 });
    else if (this.#byRule.get(rule_id)?.delete(device_id)) this.#count(device_id, -1);
  }

  #note(alert: StoredAlert): void {
    const { rule_id, device_id } = alert;
    const ofRule = this.#byRule.get(rule_id) ?? new Map();
    if (!ofRule.has(device_id)) this.#count(device_id, 1);
    this.#byRule.set(rule_id, ofRule.set(device_id, alert));
  }

  #count(deviceId: string | null, more: 1 | -1): void {
    const count = (this.#ofDevice.get(deviceId) ?? 0) + more;
    if (count > 0) this.#ofDevice.set(deviceId, count);
    else this.#ofDevice.delete(deviceId);
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
