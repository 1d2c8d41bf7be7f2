import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { startOf } from "@devmesh/contracts/model/duration";
import { firmwareVersion } from "@devmesh/contracts/model/fleet";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import { labelsOf } from "@devmesh/contracts/model/labels";
import { isProblemOf, type Problem } from "../diagnostics/diagnosis-history.ts";

/** What a condition is about. */
interface DeviceFacts {
  readonly device: Device;
  readonly problems: readonly Problem[];
}

/** Whether a device meets a condition at a time (api.md, Conditions). */
export function matches(condition: DeviceCondition, { device, problems }: DeviceFacts, now: Date): boolean {
  const { text, labels, version, online, silent_for, seen_within, problem, shadow = [] } = condition;
  const ownLabels = labelsOf(device.shadow.tags);
  const texts = [device.id, device.name ?? "", ...ownLabels];
  const hasWord = (word: string) => texts.some((one) => one.includes(word));
  const hasLabel = (label: string) => ownLabels.includes(label);
  const ownVersion = firmwareVersion(device.shadow.state.reported);
  const hasProblem = (word: string) => problems.some((one) => isProblemOf(word, one));
  const isSilentFor = (duration: string) =>
    !device.online && (device.last_seen ?? device.created_at) < startOf(duration, now);
  return (
    (text?.all ?? []).every(hasWord) &&
    !(text?.none ?? []).some(hasWord) &&
    (labels?.all ?? []).every(hasLabel) &&
    !(labels?.none ?? []).some(hasLabel) &&
    (version?.in ?? [ownVersion]).includes(ownVersion) &&
    !(version?.not_in ?? []).includes(ownVersion) &&
    (online ?? device.online) === device.online &&
    (silent_for === undefined || isSilentFor(silent_for)) &&
    (seen_within === undefined || !isSilentFor(seen_within)) &&
    (problem?.in === undefined || problem.in.some(hasProblem)) &&
    !(problem?.not_in ?? []).some(hasProblem) &&
    shadow.every(({ pointer, is, is_not }) => {
      const value = valueAt(device.shadow, pointer);
      return is === undefined ? value !== is_not : value === is;
    })
  );
}

/** The value that a pointer leads to; null where there is none. */
function valueAt({ state, tags }: Device["shadow"], pointer: string): unknown {
  let value: Json | undefined = { state, tags } as Json;
  for (const member of membersOf(pointer))
    value = isJsonObject(value) && Object.hasOwn(value, member) ? value[member] : undefined;
  return value ?? null;
}
