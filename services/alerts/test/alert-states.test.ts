import { membersOf } from "@devmesh/contracts/model/json-pointer";
import { expect, test } from "@jest/globals";
import { type AlertHistory, cleared, elapse, flapMs, observe } from "../src/evaluation/alert-states.ts";
import { endOfSight, reachBack, withBlindTime } from "../src/evaluation/blind-times.ts";
import { documentOf, holdsFor, valueAt } from "../src/evaluation/value-condition.ts";

const minute = 60_000;
const none: AlertHistory = { open: null, cleared: null };
let made = 0;
const newId = () => `alert-${++made}`;
const ruleWith = (forMs: number) => ({
  id: "rule",
  name: "warm",
  severity: "warning" as const,
  epoch: 1,
  forMs,
});

/** The history after a record; its number is its time in minutes unless `at` is given. */
function record(history: AlertHistory, holds: boolean, number: number, forMs = 0, at = number * minute) {
  return observe(history, ruleWith(forMs), "pump", { holds, at, record: number, value: number }, newId);
}

const message = (text: string) => ({
  id: 1,
  timestamp: "",
  device_id: "pump",
  topic: "db/pump/t",
  message: text,
});

test.each([
  [">", 5, { 4: false, 5: false, 6: true }],
  [">=", 5, { 4: false, 5: true }],
  ["<", 5, { 4: true, 5: false }],
  ["<=", 5, { 5: true, 6: false }],
  ["==", 5, { 5: true, 6: false }],
  ["!=", 5, { 5: false, 6: true }],
  ["inside", [4, 6], { 3: false, 4: true, 6: true, 7: false }],
  ["outside", [4, 6], { 3: true, 4: false, 6: false, 7: true }],
] as const)("a value meets %s %j as its boundaries say", (is, than, expected) => {
  const condition = {
    kind: "value",
    topic: "t",
    pointer: "",
    is,
    than: Array.isArray(than) ? [...than] : than,
  } as never;
  for (const [value, holds] of Object.entries(expected))
    expect([value, holdsFor(condition, Number(value), false)]).toEqual([value, holds]);
});

test("what holds ends beyond `clear_at` alone", () => {
  const warm = { kind: "value", topic: "t", pointer: "", is: ">", than: -15, clear_at: -17 } as const;
  expect([-16, -15, -14].map((value) => holdsFor(warm, value, false))).toEqual([false, false, true]);
  expect([-18, -17, -16].map((value) => holdsFor(warm, value, true))).toEqual([false, true, true]);
  const cold = { ...warm, is: "<", than: 2, clear_at: 4 } as const;
  expect([3, 4, 5].map((value) => holdsFor(cold, value, true))).toEqual([true, true, false]);
});

test("a text is equal or not, and what cannot be compared changes nothing", () => {
  const on = { kind: "value", topic: "t", pointer: "/mode", is: "==", than: "on" } as const;
  expect([holdsFor(on, "on", false), holdsFor(on, 1, false), holdsFor(on, {}, false)]).toEqual([
    true,
    false,
    null,
  ]);
  expect(holdsFor({ ...on, is: ">", than: 1 }, "2", false)).toBeNull();
});

test("a value is found by its pointer, also in an array and below strange names", () => {
  expect(valueAt(documentOf(message("21.5")), membersOf(""))).toBe(21.5);
  expect(
    valueAt(documentOf(message('{"a/b":{"__proto__":[1,{"c":2}]}}')), membersOf("/a~1b/__proto__/1/c")),
  ).toBe(2);
  expect(valueAt(documentOf(message("{}")), membersOf("/toString"))).toBeUndefined();
  expect(valueAt(documentOf(message("no JSON")), membersOf(""))).toBeUndefined();
  expect(valueAt(documentOf({ ...message("MjE="), encoding: "base64" }), membersOf(""))).toBeUndefined();
});

test("without `for` an alert fires with its first record, and clears with the first that does not hold", () => {
  const firing = record(none, true, 1);
  expect(firing.open).toMatchObject({ state: "firing", since: minute, fired_at: minute, unsent: ["firing"] });
  expect(record(firing, true, 2)).toBe(firing);
  const ended = record(firing, false, 3);
  expect(ended.open).toBeNull();
  expect(ended.cleared).toMatchObject({
    state: "cleared",
    cleared_at: 3 * minute,
    cleared_why: "condition",
    unsent: ["firing", "cleared"],
  });
});

test("with `for` it fires to the millisecond, and is forgotten when the condition ends before", () => {
  const pending = record(none, true, 1, 5 * minute);
  expect(pending.open?.state).toBe("pending");
  expect(elapse(pending, ruleWith(5 * minute), 6 * minute - 1)).toBe(pending);
  expect(elapse(pending, ruleWith(5 * minute), 6 * minute).open).toMatchObject({
    state: "firing",
    since: minute,
    fired_at: 6 * minute,
  });
  expect(record(pending, false, 5, 5 * minute)).toEqual(none);
  // The record that ends it comes later than it would have fired: it fired, and then cleared.
  expect(record(pending, false, 7, 5 * minute).cleared).toMatchObject({
    fired_at: 6 * minute,
    cleared_at: 7 * minute,
  });
});

test("an alert that fires again within ten minutes is the same one, and else another", () => {
  const ended = record(record(none, true, 1), false, 2);
  const again = record(ended, true, 3, 0, 2 * minute + flapMs - 1);
  expect(again.open).toMatchObject({ id: ended.cleared?.id, state: "firing", flaps: 1, cleared_at: null });
  const later = record(ended, true, 3, 0, 2 * minute + flapMs);
  expect(later.open).toMatchObject({ flaps: 0 });
  expect(later.open?.id).not.toBe(ended.cleared?.id);
});

test("what ended for another reason than its condition does not flap", () => {
  const ended = cleared(record(none, true, 1), "rule_disabled", 2 * minute);
  expect(record(ended, true, 3).open?.flaps).toBe(0);
});

test("records that were observed before a crash change nothing", () => {
  const firing = record(none, true, 1);
  const ended = record(firing, false, 2);
  expect(record(record(ended, true, 1), false, 2)).toBe(ended);
  expect(record(firing, true, 1)).toBe(firing);
});

test("blind times that touch are one, and lengthen the time that is looked back", () => {
  const times = withBlindTime(withBlindTime([], [100, 200]), [150, 300]);
  expect(times).toEqual([[100, 300]]);
  expect(withBlindTime(times, [500, 600])).toEqual([
    [100, 300],
    [500, 600],
  ]);
  expect(reachBack(100, times, 350)).toBe(300);
  expect(reachBack(50, times, 350)).toBe(50);
  expect(reachBack(100, [[0, 10], ...times], 350)).toBe(300);
  expect(reachBack(100, times, 250)).toBe(250);
});

test("time that the mesh did not see is added to the end of a time that it must see", () => {
  const blind = [
    [10, 20],
    [30, 40],
  ] as const;
  const end = (from: number, seen: number) => endOfSight(from, seen, blind);
  // It ends when a blind time begins, and one unit later it lasts over it.
  expect([end(0, 10), end(0, 11), end(0, 20), end(0, 21)]).toEqual([10, 21, 30, 41]);
  expect([end(15, 10), end(20, 10), end(40, 5), end(45, 5)]).toEqual([30, 30, 45, 50]);
  // Both directions agree: looked back from the end, it is as far.
  for (const from of [0, 5, 15, 25, 45])
    for (const seen of [1, 7, 10, 25]) {
      const at = end(from, seen);
      if (from < 10 || from > 20) expect(at - reachBack(seen, blind, at)).toBe(from);
    }
});
