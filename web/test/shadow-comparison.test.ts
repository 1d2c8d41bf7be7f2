import type { JsonObject } from "@devmesh/contracts/model/json";
import { describe, expect, test } from "@jest/globals";
import { leafChanges, mergePatchBetween } from "../src/features/devices/page/json-changes.ts";
import {
  compareShadow,
  countDifferences,
  onlyDifferences,
} from "../src/features/devices/page/shadow-comparison.ts";

describe("what is reported beside what is desired", () => {
  test("is marked leaf by leaf: other, missing, or desired by nobody", () => {
    const lines = compareShadow(
      { app: { level: 5, list: [1, 2], mode: { on: true } }, same: { b: 2, a: 1 } },
      { online: true, app: { level: 4, list: [1, 2], own: 1 }, same: { a: 1, b: 2 } },
    );
    expect(
      lines.map(({ indent, text, status, desired }) => [`${"  ".repeat(indent)}${text}`, status, desired]),
    ).toEqual([
      ["{", "same", null],
      ['  "online": true', "unasked", null],
      ['  "app": {', "same", null],
      ['    "level": 4', "differs", "5"],
      ['    "list": [1,2]', "same", null],
      ['    "own": 1', "unasked", null],
      ['    "mode": {', "same", null],
      ['      "on": true', "missing", "true"],
      ["    }", "same", null],
      ["  }", "same", null],
      ['  "same": {', "same", null],
      ['    "a": 1', "same", null],
      ['    "b": 2', "same", null],
      ["  }", "same", null],
      ["}", "same", null],
    ]);
    expect(countDifferences(lines)).toBe(2);
  });

  test("differs where a scalar is reported in place of an object, even of an empty one", () => {
    expect(countDifferences(compareShadow({ a: {} }, { a: 1 }))).toBe(1);
    expect(countDifferences(compareShadow({ a: 1 }, { a: { b: 1 } }))).toBe(1);
  });

  test("does not differ by an empty object against nothing", () => {
    expect(compareShadow({ a: { b: {} } }, {})).toHaveLength(2);
  });
});

describe("the patch between two states", () => {
  test("names what changed alone, and removes by null", () => {
    expect(
      mergePatchBetween({ a: 1, b: { c: 1, d: 2 }, e: [1], f: 1 }, { a: 1, b: { c: 1, g: {} }, e: [1, 2] }),
    ).toEqual({ b: { d: null, g: {} }, e: [1, 2], f: null });
    expect(mergePatchBetween({ a: { b: 1 } }, { a: { b: 1 } })).toEqual({});
    expect(mergePatchBetween({ a: { b: 1 } }, { a: {} })).toEqual({ a: { b: null } });
  });

  test("keeps a member named __proto__ for the server to refuse", () => {
    const patch = mergePatchBetween({}, JSON.parse('{"__proto__": {"a": 1}}'));
    expect(JSON.stringify(patch)).toBe('{"__proto__":{"a":1}}');
  });
});

describe("what two writers do not agree on", () => {
  test("is told by leaves, those that both changed apart", () => {
    expect(
      leafChanges({ a: 1, b: { c: 1 }, d: 1 }, { a: 2, b: { c: 1 }, d: 2 }, { a: 3, b: {}, d: 1, "e/f": 1 }),
    ).toEqual([
      { pointer: "/a", before: "1", theirs: "2", mine: "3", clash: true },
      { pointer: "/b/c", before: "1", theirs: "1", mine: null, clash: false },
      { pointer: "/d", before: "1", theirs: "2", mine: "1", clash: false },
      { pointer: "/e~1f", before: null, theirs: null, mine: "1", clash: false },
    ]);
  });

  test("is nothing where both made the same of it", () => {
    expect(leafChanges({ a: 1 }, { a: 2, b: { c: 1 } }, { b: { c: 1 }, a: 2 })).toEqual([]);
  });
});

describe("a comparison narrowed to what differs", () => {
  const texts = (desired: JsonObject, reported: JsonObject) =>
    onlyDifferences(compareShadow(desired, reported)).map(({ indent, text }) => " ".repeat(indent) + text);

  test("has what the device has still to take over, and the objects around it", () => {
    const desired = { app: { on: true, mode: { night: 1, day: 2 } }, led: 3, fan: { speed: 1 } };
    const reported = { app: { on: true, mode: { night: 0, day: 2 }, "a {": "b {" }, led: 3, other: { x: 1 } };
    expect(texts(desired, reported)).toEqual([
      "{",
      ' "app": {',
      '  "mode": {',
      '   "night": 0',
      "  }",
      " }",
      ' "fan": {',
      '  "speed": 1',
      " }",
      "}",
    ]);
  });

  test("is empty where nothing differs", () => {
    expect(texts({ on: true }, { on: true, more: { than: ["asked"] } })).toEqual([]);
  });
});
