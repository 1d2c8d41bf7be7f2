import type { Json } from "@devmesh/contracts/model/json";
import type { AlertStore, Progress, StoredAlert } from "../store/alert-store.ts";
import { pairOf } from "../store/alert-store.ts";
import type { StoredRule } from "../store/rule-store.ts";
import { type AlertHistory, changesBetween, elapse, observe, type RuleParts } from "./alert-states.ts";
import { type OpenAlerts, type Pair, readHistories } from "./open-alerts.ts";
import type { RuleBook } from "./rule-book.ts";

/** Alerts that are read and stored together. */
const batchSize = 1_000;

/** What a round knows. */
export interface Round {
  book: RuleBook;
  readonly open: OpenAlerts;
  progress: Progress;
  /** Up to when all records were read; null while more follow. */
  coveredAt: number | null;
}

/** Of each rule and device, by {@link pairOf}. */
export type HistoryChanges = ReadonlyMap<
  string,
  { readonly pair: Pair; readonly before: AlertHistory; readonly after: AlertHistory }
>;

/** What a device, or the mesh, shows of a rule at a time; Unix milliseconds. */
export interface Sighting extends Pick<StoredAlert, "device_id"> {
  readonly holds: boolean;
  readonly at: number;
  readonly value: Json;
  /** For how long it must hold to fire, in milliseconds. */
  readonly holdMs: number;
}

export interface AlertChangesOptions {
  readonly alerts: AlertStore;
  /** Is given each alert that fired or cleared, once it is stored. */
  readonly onChanged: (alert: StoredAlert) => void;
  readonly newId: () => string;
  readonly signal: AbortSignal;
}

export type AlertChanges = ReturnType<typeof createAlertChanges>;

/** Changes alerts: what is stored of them, and what the round knows. */
export function createAlertChanges({ alerts, onChanged, newId, signal }: AlertChangesOptions) {
  /** Stores what has changed, and then the progress. */
  async function commit(
    round: Round,
    histories: HistoryChanges,
    progress?: Omit<Progress, "revision">,
  ): Promise<void> {
    const changes = [...histories.values()].map(({ before, after }) => changesBetween(before, after));
    const save = changes.flatMap((change) => change.save);
    const remove = changes.flatMap((change) => change.remove);
    const { revision } = round.progress;
    if (save.length === 0 && remove.length === 0 && progress === undefined) return;
    await alerts.commit({ save, remove, ...(progress && { progress: { ...progress, revision } }) }, signal);
    if (progress !== undefined) round.progress = { ...progress, revision: revision + 1 };
    for (const { pair, after } of histories.values()) round.open.set(pair, after);
    for (const alert of save) if (alert.state !== "pending") onChanged(alert);
  }

  return {
    commit,

    /** Changes alerts that are open, one by one. */
    async changeOpen(
      round: Round,
      of: readonly StoredAlert[],
      next: (history: AlertHistory, rule: StoredRule | undefined) => AlertHistory,
    ): Promise<void> {
      for (let from = 0; from < of.length; from += batchSize) {
        const some = of.slice(from, from + batchSize);
        const stored = await readHistories(alerts, some, signal);
        const histories = some.map((pair) => {
          const before = stored.get(pairOf(pair)) ?? { open: null, cleared: null };
          return [
            pairOf(pair),
            { pair, before, after: next(before, round.book.byId.get(pair.rule_id)) },
          ] as const;
        });
        await commit(round, new Map(histories));
      }
    },

    /**
     * Applies what devices showed of a rule, in this order; with `until` as far as it has held then. `isRepeated`:
     * sightings may have been applied before, and those that came before the last change are skipped.
     */
    async see(
      round: Round,
      rule: RuleParts,
      sightings: readonly Sighting[],
      { until, isRepeated = false }: { readonly until?: number; readonly isRepeated?: boolean } = {},
    ): Promise<void> {
      for (let from = 0; from < sightings.length; from += batchSize) {
        const some = sightings.slice(from, from + batchSize);
        const pairs = [...new Set(some.map(({ device_id }) => device_id))].map((device_id) => ({
          rule_id: rule.id,
          device_id,
        }));
        const stored = await readHistories(alerts, pairs, signal);
        const after = new Map(stored);
        for (const { device_id, holds, at, value, holdMs } of some) {
          const key = pairOf({ rule_id: rule.id, device_id });
          const history = after.get(key) ?? { open: null, cleared: null };
          const firedAt = history.open?.fired_at ?? 0;
          // It may end in the millisecond in which it began.
          const isOld = holds ? at <= Math.max(firedAt, history.cleared?.cleared_at ?? 0) : at < firedAt;
          if (isRepeated && isOld) continue;
          const parts = { ...rule, forMs: holdMs };
          const seen = observe(history, parts, device_id, { holds, at, record: 0, value }, newId);
          after.set(key, until === undefined ? seen : elapse(seen, parts, until));
        }
        const histories = pairs.map((pair) => {
          const none = { open: null, cleared: null };
          const key = pairOf(pair);
          return [key, { pair, before: stored.get(key) ?? none, after: after.get(key) ?? none }] as const;
        });
        await commit(round, new Map(histories.filter(([, { before, after }]) => before !== after)));
      }
    },
  };
}
