import type { devices } from "@devmesh/contracts/devices";
import { alertBounds } from "@devmesh/contracts/model/rule";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { selectAmong } from "../select-devices.ts";
import type { AlertStore, StoredAlert } from "../store/alert-store.ts";
import { readOnChange } from "../store/read-on-change.ts";
import type { RuleStore, StoredSilence } from "../store/rule-store.ts";

const callMs = 5_000;

/** Rows that are released at a time. */
const batchSize = 1_000;

export interface SilencesOptions {
  readonly rules: Pick<RuleStore, "editionOf" | "listSilences">;
  readonly alerts: Pick<AlertStore, "listHeld" | "commit">;
  readonly devices: Pick<Client<typeof devices>, "selectDevices">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Keeps alerts from being sent while a silence lasts. */
export function createSilences({ rules, alerts, devices, clock, signal }: SilencesOptions) {
  const readSilences = readOnChange(
    rules,
    "silences",
    (until) => rules.listSilences({ limit: alertBounds.silences }, until),
    clock,
  );
  let active: readonly StoredSilence[] = [];
  /** Ids of those that held alerts were compared with; null after a start. */
  let compared: string | null = null;

  async function releaseAll(): Promise<void> {
    for (;;) {
      const held = await alerts.listHeld(batchSize, signal);
      if (held.length === 0) return;
      await alerts.commit({ save: held.map((alert) => ({ ...alert, held: false })), remove: [] }, signal);
    }
  }

  async function silencedBy({ where, rule_ids }: StoredSilence, some: readonly StoredAlert[]) {
    const ofRule = some.filter(({ rule_id }) => rule_ids === null || rule_ids.includes(rule_id));
    if (Object.keys(where).length === 0) return ofRule;
    const ids = new Set(ofRule.map(({ device_id }) => device_id).filter((id) => id !== null));
    const newCall = () => createCallContext({ timeoutMs: callMs, signal, clock });
    const met = await selectAmong(devices, where, [...ids], newCall);
    return ofRule.filter(({ device_id }) => device_id !== null && met.has(device_id));
  }

  return {
    /** Reads which silences last. When others do than before, what they hold is looked at again. */
    async read(now: number): Promise<void> {
      const all = await readSilences(signal);
      active = all.filter(({ from, until }) => from <= now && now < until);
      const ids = active.map(({ id }) => id).join();
      if (ids === compared) return;
      await releaseAll();
      compared = ids;
    },

    /** Those that are not silenced. Of the others, one that fired and cleared unsent is forgotten as a message. */
    async apply(unsent: readonly StoredAlert[]): Promise<readonly StoredAlert[]> {
      let rest = unsent;
      const silenced: StoredAlert[] = [];
      for (const silence of active) {
        const some = new Set(await silencedBy(silence, rest));
        silenced.push(...some);
        rest = rest.filter((alert) => !some.has(alert));
      }
      const save = silenced.map((alert) =>
        alert.state === "cleared" && alert.unsent[0] === "firing"
          ? { ...alert, unsent: [], sent_to: [] }
          : { ...alert, held: true },
      );
      if (save.length > 0) await alerts.commit({ save, remove: [] }, signal);
      return rest;
    },
  };
}
