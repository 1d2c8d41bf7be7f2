import { AlertRule } from "@devmesh/contracts/model/rule";
import { describe, expect, test } from "@jest/globals";
import {
  emptyRule,
  readRule,
  ruleAsTyped,
  ruleField,
  ruleSentence,
  type TypedRule,
} from "../src/features/alerts/typed-rule.ts";

const typed: TypedRule = { ...emptyRule, topic: "climate", pointer: "/celsius", than: "8,5" };

describe("a rule as it is typed", () => {
  test("is the body of a request, and has its condition for a name", () => {
    const { body, faults } = readRule({
      ...typed,
      clear_at: "−7.25",
      where: "label:freezer",
      for: "5 min",
      severity: "critical",
      note: " Close the door. ",
    });
    expect(faults).toEqual({});
    expect(body).toEqual({
      name: "celsius of climate is above 8.5 (until −7.25)",
      enabled: true,
      severity: "critical",
      where: { labels: { all: ["freezer"] } },
      when: {
        kind: "value",
        topic: "climate",
        pointer: "/celsius",
        is: ">",
        than: 8.5,
        clear_at: -7.25,
      },
      for: "PT5M",
      notify: [],
      repeat: null,
      note: "Close the door.",
    });
  });

  test.each([
    ["8", 8],
    ["true", true],
    ["open", "open"],
    ['"true"', "true"],
    ['"8"', "8"],
  ])("compares with %s as what it looks like", (than, value) => {
    const { body } = readRule({ ...typed, is: "==", than });
    expect(body?.when).toMatchObject({ is: "==", than: value });
  });

  test("has two bounds, each with its fault", () => {
    const bounds = { ...typed, is: "outside", low: "2", high: "8" } as const;
    expect(readRule(bounds).body?.when).toMatchObject({ than: [2, 8] });
    expect(Object.keys(readRule({ ...bounds, high: "" }).faults)).toEqual(["low"]);
    expect(Object.keys(readRule({ ...bounds, low: "9" }).faults)).toEqual(["low"]);
  });

  test("says what is wrong at the field that it comes from", () => {
    const faults = (changes: Partial<TypedRule>) => Object.keys(readRule({ ...typed, ...changes }).faults);
    expect(faults({ topic: "" })).toEqual(["topic"]);
    expect(faults({ pointer: "celsius" })).toEqual(["pointer"]);
    expect(faults({ than: "warm" })).toEqual(["than"]);
    expect(faults({ clear_at: "9" })).toEqual(["clear_at"]);
    expect(faults({ for: "soon" })).toEqual(["for"]);
    expect(faults({ where: "label:a n:" })).toEqual(["where"]);
    expect(faults({ kind: "offline", longer_than: "1 s" })).toEqual(["longer_than"]);
    expect(faults({ kind: "offline", longer_than: "10 s", for: "5 min" })).toEqual([]);
    expect(readRule({ ...typed, kind: "not_taken", longer_than: "1 s" }).faults).toEqual({
      longer_than: "Must be from 10 s to 365 d.",
    });
    expect(faults({ kind: "shadow", place: "/app", than: "8" })).toEqual(["place"]);
    expect(faults({ kind: "event", event: "logins", count: "0", within: "2 h" })).toEqual([
      "event",
      "count",
      "within",
    ]);
    expect(
      ["/notify/0", "/when/topic", "/when/else", "/repeat", "/x"].map((at) => ruleField(at, typed)),
    ).toEqual(["notify", "topic", "kind", "repeat", "name"]);
  });

  test("comes from a stored rule, and is that rule again", () => {
    for (const when of [
      { kind: "value", topic: "door/#", is: "==", than: "true" },
      { kind: "value", topic: "climate", pointer: "/a~1b", is: "inside", than: [-2.5, 1_000] },
      { kind: "value", topic: "climate", is: "<=", than: 0.5, clear_at: 0.75 },
      { kind: "offline", longer_than: "P2D" },
      { kind: "silent", longer_than: "PT10M" },
      { kind: "silent", topic: "flow", longer_than: "PT10M" },
      { kind: "shadow", pointer: "/state/reported/mode", is: "!=", than: "auto" },
      { kind: "shadow", pointer: "/tags/limit", is: "outside", than: [1, 2] },
      { kind: "not_taken", longer_than: "PT1H" },
      { kind: "event", name: "rpc.out.alarm", count: 3, within: "PT10M" },
    ]) {
      const rule = AlertRule.parse({
        id: "one",
        name: "Rule",
        enabled: false,
        severity: "info",
        where: { labels: { all: ["freezer"] } },
        when,
        for: when.kind === "value" || when.kind === "shadow" ? "PT90S" : "PT0S",
        notify: ["channel"],
        repeat: "PT12H",
        note: null,
        created_at: "2026-01-31T12:00:00.000Z",
      });
      const { id: _, created_at: __, ...body } = rule;
      const again = ruleAsTyped(rule);
      expect(again && readRule(again)).toEqual({ body, faults: {} });
    }
  });

  test("is said in a sentence", () => {
    const value = readRule({ ...typed, for: "90 s", where: "label:freezer" }).body;
    expect(value && ruleSentence(value)).toBe(
      "When celsius of climate is above 8.5 for 90 s, on devices with label:freezer",
    );
    const offline = readRule({ ...typed, kind: "offline", longer_than: "2 h" }).body;
    expect(offline && ruleSentence(offline)).toBe("When a device has no connection for longer than 2 h");
    expect(offline?.name).toBe("a device has no connection for longer than 2 h");
    const sentences = [
      { kind: "silent", topic: "flow", longer_than: "5 min" },
      { kind: "silent", longer_than: "1 d", topic: "" },
      { kind: "shadow", place: "/state/reported/mode", is: "==", than: "eco" },
      { kind: "not_taken", longer_than: "1 h" },
      { kind: "event", event: "login_refused", count: "10", within: "10 min" },
      { kind: "event", event: "rpc.out.alarm", count: "1", within: "10 min" },
    ].map((changes) => {
      const { body } = readRule({ ...typed, ...(changes as Partial<TypedRule>) });
      return body && ruleSentence(body);
    });
    expect(sentences).toEqual([
      "When no record comes on flow for longer than 5 min",
      "When no record comes for longer than 1 d",
      "When /state/reported/mode of the shadow is “eco”",
      "When what is desired is not reported for longer than 1 h",
      "When login_refused happens 10 times within 10 min",
      "When rpc.out.alarm happens once within 10 min",
    ]);
  });
});
