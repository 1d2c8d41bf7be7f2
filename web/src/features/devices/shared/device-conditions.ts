import { printConditionText } from "@devmesh/contracts/model/condition-text";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import type { DeviceTableRow } from "./device-row.ts";

/** Whether a row meets a condition; null where only the server can say it. */
export function meets(row: DeviceTableRow, condition: DeviceCondition): boolean | null {
  const { text, labels, version, online, silent_for, seen_within, problem, shadow = [] } = condition;
  const isIn = (part: string) =>
    row.id.includes(part) ||
    row.name?.includes(part) === true ||
    row.labels.some((label) => label.includes(part));
  const isLabelled = (label: string) => row.labels.includes(label);
  const isOfVersion = (one: string | null) => row.firmware === one;
  if (text?.all?.every(isIn) === false || text?.none?.some(isIn)) return false;
  if (labels?.all?.every(isLabelled) === false || labels?.none?.some(isLabelled)) return false;
  if (version?.in?.some(isOfVersion) === false || version?.not_in?.some(isOfVersion)) return false;
  if (online !== undefined && row.online !== online) return false;
  if (silent_for !== undefined && row.online) return false;
  const asksServer = silent_for ?? seen_within ?? problem ?? shadow[0];
  return asksServer === undefined ? true : null;
}

/** Whether presence decides on a condition. */
export function asksPresence({ online, silent_for, seen_within }: DeviceCondition): boolean {
  return online !== undefined || silent_for !== undefined || seen_within !== undefined;
}

/** The list of the devices that meet a condition. */
export function devicesWhere(condition: DeviceCondition): string {
  return `/devices?${new URLSearchParams({ where: printConditionText(condition) })}`;
}
