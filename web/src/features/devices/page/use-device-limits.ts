import type { Device } from "@devmesh/contracts/model/device";
import { useMemo } from "react";
import { isOn, linesOf } from "../../alerts/rule-limits.ts";
import { useAlerts, useRules } from "../../alerts/use-alerts.ts";
import { noLimits, type PlotLimits } from "../../data/plot-limits.ts";
import { meets } from "../shared/device-conditions.ts";
import { rowOf } from "../shared/device-row.ts";

/** What rules want of a value of a device: their lines, and since when those that fire have held. */
export function useDeviceLimits(device: Device, topic: string, pointer: string): PlotLimits {
  const { data: rules } = useRules();
  const { data: alerts } = useAlerts({ state: "firing", device_id: device.id });
  return useMemo(() => {
    const row = rowOf(device);
    const mine = (rules ?? []).filter(
      ({ enabled, where, when }) =>
        enabled && when.kind === "value" && isOn(when, topic, pointer) && meets(row, where) !== false,
    );
    if (mine.length === 0) return noLimits;
    const ids = new Set(mine.map(({ id }) => id));
    return {
      lines: mine.flatMap(({ name, when }) => (when.kind === "value" ? linesOf(when, name) : [])),
      held: (alerts ?? [])
        .filter(({ rule_id }) => ids.has(rule_id))
        .map(({ since }) => ({ from: Date.parse(since), to: Number.MAX_SAFE_INTEGER })),
    };
  }, [device, topic, pointer, rules, alerts]);
}
