import { AlertRule } from "@devmesh/contracts/model/rule";
import { expect, test } from "@jest/globals";
import { timeFieldText } from "../src/components/time-field.tsx";
import { emptySilence, readSilence } from "../src/features/alerts/create-silence.tsx";
import { isOn, linesOf } from "../src/features/alerts/rule-limits.ts";
import { silencedDevices, silenceState } from "../src/features/alerts/silence-words.ts";
import { withLines } from "../src/features/data/plot-limits.ts";

const now = Date.parse("2026-01-31T12:00:00.000Z");
const later = (ms: number) => new Date(now + ms).toISOString();

test("a silence as it is typed lasts from now, or from one time to another", () => {
  expect(
    readSilence({ ...emptySilence, where: "label:freezer", rule_ids: ["one"], note: " Repair " }, now),
  ).toEqual({
    body: {
      where: { labels: { all: ["freezer"] } },
      rule_ids: ["one"],
      until: later(3_600_000),
      note: "Repair",
    },
    faults: {},
  });
  const times = { ...emptySilence, lasts: "times" } as const;
  const [from, until] = [later(60_000), later(120_000)].map(timeFieldText) as [string, string];
  expect(readSilence({ ...times, from, until }, now).body).toEqual({
    where: {},
    from: later(60_000),
    until: later(120_000),
    note: null,
  });
  expect(readSilence(times, now)).toEqual({ body: null, faults: { until: "Enter a time." } });
  expect(readSilence({ ...times, from: until, until: from }, now).faults).toEqual({
    until: "Must be after `from`.",
  });
  expect(Object.keys(readSilence({ ...emptySilence, where: "n:" }, now).faults)).toEqual(["where"]);
});

test("a silence is planned, active or ended, and says which devices it is for", () => {
  const silence = { from: later(0), until: later(60_000) };
  expect([now - 1, now, now + 60_000].map((at) => silenceState(silence, at))).toEqual([
    "planned",
    "active",
    "ended",
  ]);
  expect(silencedDevices({ where: {} })).toBe("all devices");
});

test("a rule on a value has its limits as lines in charts of that value alone", () => {
  const whenOf = (when: object) => {
    const rule = AlertRule.shape.when.parse({ kind: "value", topic: "room/+", pointer: "/celsius", ...when });
    if (rule.kind !== "value") throw new Error("not on a value");
    return rule;
  };
  const warm = whenOf({ is: ">", than: 8, clear_at: 7 });
  expect(linesOf(warm, "Too warm")).toEqual([
    { value: 8, label: "Too warm: is above 8" },
    { value: 7, label: "ends below 7", ends: true },
  ]);
  expect(linesOf(whenOf({ is: "outside", than: [2, 8] }), "").map(({ value }) => value)).toEqual([2, 8]);
  expect(linesOf(whenOf({ is: "==", than: "open" }), "")).toEqual([]);
  expect(isOn(warm, "room/1", "/celsius")).toBe(true);
  expect(isOn(warm, "room/1", "/percent")).toBe(false);
  expect(isOn(warm, "climate", "/celsius")).toBe(false);
});

test("a line that is near the numbers is in the chart, and one far away flattens no numbers", () => {
  const lines = [8, 1_000].map((value) => ({ value, label: "" }));
  expect(withLines(lines, 2, 6)).toEqual([2, 8]);
  expect(withLines([], 2, 6)).toEqual([2, 6]);
});
