import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { startOf } from "@devmesh/contracts/model/duration";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import type { Clock } from "@devmesh/service-kit/clock";
import { isProblemOf } from "../diagnostics/diagnosis-history.ts";
import type { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Presence } from "../presence.ts";
import type { CountedCondition, ListedDevice, StoredCondition } from "../store/device-store.ts";
import { matches } from "./matches.ts";

/** Facts of conditions that are not in the store. */
export interface DeviceSelectionOptions {
  readonly presence: Presence;
  readonly diagnostics: Pick<Diagnostics, "problemsOf" | "devicesWithProblem">;
  readonly clock: Clock;
}

/** A condition, divided by who can decide its parts. */
export interface DividedCondition {
  /** What the store decides for a list. */
  readonly stored: StoredCondition;
  /** What the store decides for a count, by recorded presence; null where only a walk over the devices can count. */
  readonly counted: CountedCondition | null;
  /** Whether what is in memory lets a device meet the condition. */
  readonly isCandidate: (listed: ListedDevice) => boolean;
  /** Whether a candidate meets the whole condition; null where each one does. */
  readonly isMet: ((device: Device) => boolean) | null;
}

/** Divides a condition for one call. With `ids` only these devices are meant. */
export function selectBy(
  where: DeviceCondition,
  { presence, diagnostics, clock }: DeviceSelectionOptions,
  ids?: readonly string[],
): DividedCondition {
  const { text, labels, version, online, silent_for, seen_within, problem, shadow = [] } = where;
  const now = clock.now();
  const msBefore = (duration: string) => Date.parse(startOf(duration, now));
  const troubled = problem?.in && [...new Set(problem.in.flatMap(diagnostics.devicesWithProblem))];
  const among = ids === undefined || troubled === undefined ? (ids ?? troubled) : intersection(ids, troubled);
  const contained = shadow.flatMap(({ pointer, is }) => textOfValue(pointer, is));
  const stored: StoredCondition = {
    ...(text?.all && { words: text.all }),
    ...(text?.none && { noWords: text.none }),
    ...(labels?.all && { labels: labels.all }),
    ...(labels?.none && { noLabels: labels.none }),
    ...(version?.in && { versions: version.in }),
    ...(version?.not_in && { noVersions: version.not_in }),
    ...(silent_for !== undefined && { silentSince: msBefore(silent_for) }),
    ...(seen_within !== undefined && { seenSince: msBefore(seen_within) }),
    ...(among && { ids: among }),
    ...(contained.length > 0 && { contained }),
  };
  const isTroubled = ({ id, created_at }: ListedDevice) => {
    if (problem === undefined) return true;
    const problems = diagnostics.problemsOf(id, created_at);
    const hasProblem = (word: string) => problems.some((one) => isProblemOf(word, one));
    return (problem.in?.some(hasProblem) ?? true) && !(problem.not_in ?? []).some(hasProblem);
  };
  const isCounted = problem === undefined && shadow.length === 0;
  const isMet = (device: Device) => {
    const problems = diagnostics.problemsOf(device.id, Date.parse(device.created_at));
    return matches(where, { device, problems }, now);
  };
  return {
    stored,
    counted: isCounted ? { ...stored, ...(online !== undefined && { online }) } : null,
    isCandidate(listed) {
      const isOnline = presence.isOnline(listed.id);
      const isPresent = (online ?? isOnline) === isOnline && (silent_for === undefined || !isOnline);
      return isPresent && isTroubled(listed);
    },
    isMet: shadow.length > 0 ? isMet : null,
  };
}

function intersection(one: readonly string[], other: readonly string[]): string[] {
  const wanted = new Set(other);
  return one.filter((id) => wanted.has(id));
}

/** What is in the JSON of each shadow that has a value at a pointer; none where that is not known. */
function textOfValue(pointer: string, is: unknown): string[] {
  const member = membersOf(pointer).at(-1);
  // Presence is not stored; null is a member that is absent.
  if (is === undefined || is === null || member === undefined || pointer === onlinePointer) return [];
  return [`${JSON.stringify(member)}:${JSON.stringify(is)}`];
}

const onlinePointer = "/state/reported/online";
