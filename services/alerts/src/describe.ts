import type { Alert } from "@devmesh/contracts/model/alert";
import type { AlertChannel, AlertRule } from "@devmesh/contracts/model/rule";
import type { Silence } from "@devmesh/contracts/model/silence";
import type { StoredAlert } from "./store/alert-store.ts";
import type { StoredChannel, StoredRule, StoredSilence } from "./store/rule-store.ts";

const timeOf = (at: number) => new Date(at).toISOString();
const timeOrNull = (at: number | null) => (at === null ? null : timeOf(at));

/** A rule as clients see it. */
export function describeRule({
  forMs: _,
  epoch: __,
  revision: ___,
  created_at,
  notify,
  ...rule
}: StoredRule): AlertRule {
  return { ...rule, notify: [...notify], created_at: timeOf(created_at) };
}

/** A channel as clients see it. */
export function describeChannel({
  sent_at: _,
  storms: __,
  revision: ___,
  created_at,
  ...channel
}: StoredChannel): AlertChannel {
  return { ...channel, created_at: timeOf(created_at) };
}

/** A silence as clients see it. */
export function describeSilence({ from, until, created_at, ...silence }: StoredSilence): Silence {
  return { ...silence, from: timeOf(from), until: timeOf(until), created_at: timeOf(created_at) };
}

/** An alert that has fired, as clients see it. */
export function describeAlert(alert: StoredAlert): Alert {
  const { state, ...stored } = alert;
  const {
    epoch: _,
    record: __,
    unsent: ___,
    held: ____,
    notified_at: _____,
    sent_to: ______,
    revision: _______,
    ...shown
  } = stored;
  return {
    ...shown,
    state: state === "cleared" ? "cleared" : "firing",
    since: timeOf(alert.since),
    fired_at: timeOf(alert.fired_at ?? alert.since),
    cleared_at: timeOrNull(alert.cleared_at),
    acknowledged_at: timeOrNull(alert.acknowledged_at),
  };
}
