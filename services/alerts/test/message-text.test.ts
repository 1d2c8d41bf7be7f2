import { expect, test } from "@jest/globals";
import { chatText, conditionText, valueText } from "../src/notifying/message-text.ts";

const alert = {
  state: "firing" as const,
  rule_id: "r1",
  rule_name: "Freezer is warm",
  severity: "critical" as const,
  device_id: "freezer-1",
  device_name: "Cellar" as string | null,
  condition: "temperature > -15",
  value: "-12.5" as string | null,
  since: "2026-01-31T12:00:00.000Z",
  note: "Call Ann" as string | null,
};

test("an alert is one line with rule, device, condition, value, time and note", () => {
  expect(chatText({ alerts: [alert], more: 0 }, undefined)).toBe(
    "Firing: Freezer is warm (critical), Cellar (freezer-1): temperature > -15, value -12.5, since 2026-01-31T12:00:00.000Z. Call Ann",
  );
  const bare = { ...alert, state: "cleared" as const, device_name: null, value: null, note: null };
  expect(chatText({ alerts: [bare], more: 1 }, undefined)).toBe(
    "Cleared: Freezer is warm (critical), freezer-1: temperature > -15, since 2026-01-31T12:00:00.000Z\nAnd 1 more.",
  );
});

test("a storm is one line with its numbers and first devices, and a link follows", () => {
  const storm = {
    ...{
      rule_id: "r1",
      rule_name: "Away",
      severity: "warning" as const,
      condition: "offline",
      note: "Call Ann",
    },
    ...{ firing: 1_990, cleared: 10, device_ids: ["a", "b"] },
  } as const;
  const storms = [{ ...storm, device_ids: [...storm.device_ids] }];
  expect(chatText({ alerts: [], more: 0, storms }, "https://mesh.example.com")).toBe(
    "2000 alerts of Away (warning): offline: 1990 firing, 10 cleared; first a, b. Call Ann\nhttps://mesh.example.com/alerts",
  );
});

test("a message has at most 2,000 characters, counts what it does not name, and breaks no line or character", () => {
  const evil = `a\r\n\u202Eb${"😀".repeat(500)}`;
  const long = { ...alert, rule_name: evil, device_name: evil, condition: evil, value: evil, note: evil };
  const text = chatText({ alerts: [long, long, long], more: 4 }, undefined);
  expect(text.length).toBeLessThanOrEqual(2_000);
  expect(text.isWellFormed()).toBe(true);
  expect(text.split("\n")).toHaveLength(2);
  expect(text).toContain("a \\u202eb");
  expect(text).toMatch(/And 6 more\.$/);
});

test("a value is its JSON, cut, without the secrets that are in it", () => {
  expect(valueText(null)).toBeNull();
  expect(valueText(`dt_${"a".repeat(32)}`)).toBe('"dt_[redacted]"');
  expect(valueText("x".repeat(999))).toHaveLength(256);
});

test("a condition is in words with its bounds", () => {
  expect(conditionText({ kind: "value", topic: "t", pointer: "/c", is: "outside", than: [1, 2] })).toBe(
    "t /c outside 1 to 2",
  );
  expect(conditionText({ kind: "value", topic: "t", pointer: "", is: ">", than: 3, clear_at: 2 })).toBe(
    "t > 3, until 2",
  );
  expect(conditionText({ kind: "silent", longer_than: "PT1M" })).toBe("no record for longer than PT1M");
  expect(conditionText({ kind: "silent", topic: "t/#", longer_than: "PT1M" })).toBe(
    "no record of t/# for longer than PT1M",
  );
  expect(conditionText({ kind: "offline", longer_than: "PT1M" })).toBe("offline for longer than PT1M");
});
