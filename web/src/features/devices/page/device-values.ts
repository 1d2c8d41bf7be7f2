import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { checkNumbers } from "@devmesh/contracts/model/exact-numbers";
import { type Json, parseJson } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { valueLabelOf } from "@devmesh/contracts/model/value-labels";
import { ViolationList } from "@devmesh/contracts/model/violation";
import { deviceTopics } from "@devmesh/contracts/mqtt";

/** Members of a payload below this depth are not values by themselves. */
const deepest = 4;

/** A text that is longer is a message rather than a value. */
const longestText = 64;

/** A value that a device published last. */
export interface DeviceValue {
  /** Unique among those of the device. */
  readonly key: string;
  /** Whole MQTT topic. */
  readonly topic: string;
  /** Name of its numbers in charts. */
  readonly series: string;
  /** What people call it. */
  readonly name: string;
  readonly unit: string | undefined;
  readonly value: number | boolean | string;
  /** RFC 3339. */
  readonly at: string;
}

/** The values in the newest record of each topic, with names and units of the device's tags. */
export function valuesOf(
  deviceId: string,
  tags: { readonly [tag: string]: Json },
  records: readonly DataRecord[],
): readonly DeviceValue[] {
  const found: DeviceValue[] = [];
  for (const record of records) {
    if (record.encoding !== undefined) continue;
    const topic = record.topic.slice(deviceTopics.record(deviceId, "").length);
    // A number that the page cannot hold is not to be changed by being shown.
    const changed = new ViolationList();
    checkNumbers(record.message, changed);
    const add = (value: Json, path: readonly string[]) => {
      if (Array.isArray(value) || value === null) return;
      if (typeof value === "object") {
        if (path.length < deepest)
          for (const [name, member] of Object.entries(value)) add(member, [...path, name]);
        return;
      }
      if (typeof value === "string" && value.length > longestText) return;
      const pointer = path.map(pointerToken).join("");
      if (changed.pointers.includes(pointer)) return;
      const label = valueLabelOf(tags, { topic, pointer });
      found.push({
        key: `${topic}#${pointer}`,
        topic: record.topic,
        series: path.join(".") || "value",
        name: label.name ?? inWords(path.at(-1) ?? topic.slice(topic.lastIndexOf("/") + 1)),
        unit: label.unit,
        value,
        at: record.timestamp,
      });
    };
    const parsed = parseJson(record.message);
    if (parsed !== undefined) add(parsed, []);
    else if (record.message !== "") add(record.message, []);
  }
  return found;
}

/** A member's name as a heading: "door_open" as "Door open". */
function inWords(name: string): string {
  const words = name.replaceAll(/[_-]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The newest record of each topic, those in `more` among them. */
export function withNewer(
  records: readonly DataRecord[],
  more: readonly DataRecord[],
): readonly DataRecord[] {
  if (more.length === 0) return records;
  const newest = new Map(records.map((record) => [record.topic, record]));
  for (const record of more) {
    const held = newest.get(record.topic);
    if (held === undefined || held.id < record.id) newest.set(record.topic, record);
  }
  return [...newest.values()].sort((one, other) => (one.topic < other.topic ? -1 : 1));
}
