import { describe, expect, test } from "@jest/globals";
import { countDifferences, desiredText, shadowLines } from "../src/features/devices/page/shadow-lines.ts";
import { leafChanges, mergePatchBetween } from "../src/features/devices/shared/json-changes.ts";

describe("what is reported beside what is desired", () => {
  test("is in lines that belong together, marked leaf by leaf", () => {
    const lines = shadowLines(
      { app: { level: 5, list: [1, 2], mode: { on: true } }, same: { b: 2, a: 1 } },
      { online: true, app: { level: 4, list: [1, 2], own: { x: 1 } }, same: { a: 1, b: 2 } },
    );
    expect(lines.map(({ desired, reported, status }) => [desired, reported, status])).toEqual([
      ["{", "{", "same"],
      ['  "app": {', '  "app": {', "same"],
      ['    "level": 5,', '    "level": 4,', "differs"],
      ['    "list": [1,2],', '    "list": [1,2],', "same"],
      ['    "mode": {', null, "missing"],
      ['      "on": true', null, "missing"],
      ["    }", null, "missing"],
      [null, '    "own": {', "unasked"],
      [null, '      "x": 1', "unasked"],
      [null, "    }", "unasked"],
      ["  },", "  },", "same"],
      ['  "same": {', '  "same": {', "same"],
      ['    "b": 2,', '    "b": 2,', "same"],
      ['    "a": 1', '    "a": 1', "same"],
      ["  }", "  },", "same"],
      [null, '  "online": true', "unasked"],
      ["}", "}", "same"],
    ]);
    expect(countDifferences(lines)).toBe(2);
  });

  test("is JSON on each side, as empty lines mean nothing", () => {
    const desired = { a: { b: 1 }, c: { d: [1, { e: null }] }, f: "x" };
    const reported = { z: 1, a: { y: { x: {} }, b: 2 }, c: 3 };
    const lines = shadowLines(desired, reported);
    expect(JSON.parse(desiredText(lines))).toEqual(desired);
    expect(JSON.parse(lines.map((line) => line.reported ?? "").join("\n"))).toEqual(reported);
  });

  test("differs where a scalar is reported in place of an object, even of an empty one", () => {
    expect(countDifferences(shadowLines({ a: {} }, { a: 1 }))).toBe(1);
    expect(countDifferences(shadowLines({ a: 1 }, { a: { b: 1 } }))).toBe(1);
  });

  test("does not differ by an empty object against nothing", () => {
    expect(countDifferences(shadowLines({ a: { b: {} } }, {}))).toBe(0);
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
