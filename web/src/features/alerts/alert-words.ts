import type { Alert } from "@devmesh/contracts/model/alert";
import { type AlertRule, Severity } from "@devmesh/contracts/model/rule";
import { valueText } from "../../components/number-text.ts";
import type { StateLook } from "../../components/state.tsx";

export const severityLooks: Readonly<Record<AlertRule["severity"], StateLook>> = {
  critical: "bad",
  warning: "warn",
  info: "info",
};

const clearReasons: Readonly<Record<NonNullable<Alert["cleared_why"]>, string>> = {
  condition: "the condition ended",
  device_deleted: "the device was deleted",
  not_matching: "the device is not of the rule any more",
  rule_disabled: "the rule was disabled",
  rule_changed: "the rule was changed",
  rule_deleted: "the rule was deleted",
};

/** The device of an alert; the alert of the rule `mesh` has none. */
export function alertDeviceText({ device_id }: Pick<Alert, "device_id">): string {
  return device_id ?? "the mesh";
}

/** Why an alert cleared; empty while it fires. */
export function clearedText({ cleared_why }: Pick<Alert, "cleared_why">): string {
  return cleared_why === null ? "" : (clearReasons[cleared_why] ?? cleared_why);
}

/** The look of an alert: that of its severity while somebody has to see to it. */
export function alertLook({ state, acknowledged_at, severity }: Alert): StateLook {
  if (state === "cleared") return "good";
  return acknowledged_at === null ? severityLooks[severity] : "idle";
}

/** "firing", "acknowledged" or "cleared". */
export function alertStateText({ state, acknowledged_at }: Alert): string {
  return state === "firing" && acknowledged_at !== null ? "acknowledged" : state;
}

/** A value that made a rule fire; empty for none. */
export function alertValueText(value: Alert["value"]): string {
  if (value === null) return "";
  return typeof value === "number"
    ? valueText(value)
    : typeof value === "string"
      ? value
      : JSON.stringify(value);
}

/** What an alert does, in a line: "firing, 12.5" or "cleared, the condition ended". */
export function alertOutcome(alert: Alert): string {
  const detail = alert.state === "cleared" ? clearedText(alert) : alertValueText(alert.value);
  return [alertStateText(alert), detail].filter((text) => text !== "").join(", ");
}

/** Those that nobody has acknowledged come first, then the worse ones, then the newer ones. */
export function worstFirst(alerts: readonly Alert[]): readonly Alert[] {
  const rank = ({ acknowledged_at, severity }: Alert) =>
    (acknowledged_at === null ? 10 : 0) + Severity.options.indexOf(severity);
  return alerts.toSorted((one, other) => rank(other) - rank(one));
}
