import type { Json } from "@devmesh/contracts/model/json";
import type { StoredAlert } from "../store/alert-store.ts";
import type { StoredRule } from "../store/rule-store.ts";

/** Firing again within this time of clearing is the same alert, in milliseconds. */
export const flapMs = 10 * 60_000;

/** What is stored of a rule and a device: the alert that is open, and the last one that cleared. */
export interface AlertHistory {
  readonly open: StoredAlert | null;
  readonly cleared: StoredAlert | null;
}

/** What a device showed at a time; Unix milliseconds. */
export interface Observation {
  readonly holds: boolean;
  readonly at: number;
  /** Id of the record that showed it; 0 for what no record shows. */
  readonly record: number;
  readonly value: Json;
}

/** What alerts take from their rule. */
export type RuleParts = Pick<StoredRule, "id" | "name" | "severity" | "epoch" | "forMs">;

/** The history after an observation; the history itself where nothing changes. Pure. */
export function observe(
  history: AlertHistory,
  rule: RuleParts,
  deviceId: string | null,
  { holds, at, record, value }: Observation,
  newId: () => string,
): AlertHistory {
  // It was observed before a crash.
  if (record > 0 && record <= Math.max(history.open?.record ?? 0, history.cleared?.record ?? 0))
    return history;
  const now = elapse(history, rule, at);
  if (!holds) return now.open === null ? now : cleared(now, "condition", at, record);
  if (now.open !== null) return now;
  const pending: StoredAlert = {
    id: newId(),
    rule_id: rule.id,
    rule_name: rule.name,
    epoch: rule.epoch,
    severity: rule.severity,
    device_id: deviceId,
    state: "pending",
    since: at,
    fired_at: null,
    cleared_at: null,
    cleared_why: null,
    value,
    flaps: 0,
    acknowledged_at: null,
    acknowledged_by: null,
    note: null,
    record,
    unsent: [],
    held: false,
    notified_at: null,
    sent_to: [],
    revision: 0,
  };
  return elapse({ ...now, open: pending }, rule, at);
}

/** The history once time has passed: what has held for long enough fires. */
export function elapse(history: AlertHistory, { forMs }: RuleParts, at: number): AlertHistory {
  const { open, cleared } = history;
  if (open?.state !== "pending" || at < open.since + forMs) return history;
  const firing = {
    state: "firing",
    since: open.since,
    fired_at: open.since + forMs,
    cleared_at: null,
    cleared_why: null,
    value: open.value,
    record: open.record,
  } as const;
  const isAgain =
    cleared !== null &&
    cleared.cleared_why === "condition" &&
    cleared.epoch === open.epoch &&
    firing.fired_at - (cleared.cleared_at ?? 0) < flapMs;
  if (!isAgain) return { open: { ...open, ...firing, ...toSend(open, "firing") }, cleared };
  return {
    open: {
      ...cleared,
      ...firing,
      flaps: cleared.flaps + 1,
      acknowledged_at: null,
      acknowledged_by: null,
      ...toSend(cleared, "firing"),
    },
    cleared: null,
  };
}

/** Adds a state that people are to be notified of. A channel that knows of the one before makes it the first. */
function toSend(
  { unsent: [first], sent_to }: StoredAlert,
  state: StoredAlert["unsent"][number],
): Pick<StoredAlert, "unsent" | "held" | "sent_to"> {
  const isFirst = first === undefined || sent_to.length > 0;
  return { unsent: isFirst ? [state] : [first, state], held: false, sent_to: [] };
}

/** The history once the open alert has ended: one that is pending is forgotten. */
export function cleared(
  { open, cleared: before }: AlertHistory,
  why: NonNullable<StoredAlert["cleared_why"]>,
  at: number,
  record = 0,
): AlertHistory {
  if (open === null || open.state === "pending") return { open: null, cleared: before };
  return {
    open: null,
    cleared: {
      ...open,
      state: "cleared",
      cleared_at: Math.max(at, open.fired_at ?? at),
      cleared_why: why,
      record: Math.max(open.record, record),
      ...toSend(open, "cleared"),
    },
  };
}

/** What must be stored to get from one history to another. */
export function changesBetween(
  before: AlertHistory,
  after: AlertHistory,
): { readonly save: StoredAlert[]; readonly remove: StoredAlert[] } {
  const rows = ({ open, cleared }: AlertHistory) => [open, cleared].filter((row) => row !== null);
  const old = new Map(rows(before).map((row) => [row.id, row]));
  const save = rows(after).filter((row) => old.get(row.id) !== row);
  const kept = new Set(rows(after).map(({ id }) => id));
  const remove = rows(before).filter(({ id, state }) => state === "pending" && !kept.has(id));
  return { save, remove };
}
