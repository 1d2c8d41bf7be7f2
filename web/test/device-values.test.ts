import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { expect, test } from "@jest/globals";
import { gatherNumbers } from "../src/features/data/topic-numbers.ts";
import { valuesOf, withNewer } from "../src/features/devices/page/device-values.ts";
import { firstValue } from "../src/features/devices/page/first-value.ts";

const at = "2026-01-31T12:00:00.000Z";

function recordOf(id: number, topic: string, message: string): DataRecord {
  return { id, timestamp: at, device_id: "pump", topic: `db/pump/${topic}`, message };
}

test("values are the leaves of the newest payloads, with the names and units of the tags", () => {
  const tags = {
    units: { "climate#/air/celsius": { unit: "°C", name: "Air" }, level: "%" },
  };
  const values = valuesOf("pump", tags, [
    recordOf(1, "climate", '{"air":{"celsius":21.5,"door_open":true},"list":[1],"none":null}'),
    recordOf(2, "tank/level", "71"),
    recordOf(3, "state", "running dry"),
    recordOf(4, "log", "x".repeat(100)),
    recordOf(6, "modem", '{"iccid":89490200001234567891,"rssi":-70}'),
    { ...recordOf(5, "raw", "AAE="), encoding: "base64" },
  ]);
  expect(values.map(({ key, series, name, unit, value }) => [key, series, name, unit, value])).toEqual([
    ["climate#/air/celsius", "air.celsius", "Air", "°C", 21.5],
    ["climate#/air/door_open", "air.door_open", "Door open", undefined, true],
    ["tank/level#", "value", "Level", "%", 71],
    ["state#", "value", "State", undefined, "running dry"],
    // The page would show another iccid.
    ["modem#/rssi", "rssi", "Rssi", undefined, -70],
  ]);
});

test("a newer record takes the place of the one of its topic, and an older one does not", () => {
  const held = [recordOf(1, "a", "1"), recordOf(5, "b", "5")];
  const newest = withNewer(held, [recordOf(4, "b", "4"), recordOf(7, "a", "7"), recordOf(8, "c", "8")]);
  expect(newest.map(({ id }) => id)).toEqual([7, 5, 8]);
  expect(withNewer(held, [])).toBe(held);
});

test("the first chart is of a number that changes, one with a unit, one with many points, the newest", () => {
  const first = (tags: object, ...payloads: readonly (readonly [topic: string, message: string])[]) => {
    const records = payloads.map(([topic, message], nth) => recordOf(nth + 1, topic, message));
    const numbers = gatherNumbers();
    numbers.add(records);
    const values = valuesOf("pump", tags as never, withNewer([], records));
    return firstValue(values, { topics: numbers.topics() })?.key;
  };
  const steady = [
    ["a", "5"],
    ["a", "5"],
    ["a", "5"],
  ] as const;
  const changes = [
    ["b", '{"x":1,"y":1}'],
    ["b", '{"x":2,"y":2}'],
  ] as const;
  expect(first({}, ...steady, ...changes)).toBe("b#/x");
  expect(first({ units: { "b#/y": "bar" } }, ...steady, ...changes)).toBe("b#/y");
  expect(first({}, ...changes, ["c", "1"], ["c", "2"], ["c", "3"])).toBe("c#");
  expect(first({}, ...steady)).toBe("a#");
  expect(first({}, ["state", "running"])).toBeUndefined();
});
