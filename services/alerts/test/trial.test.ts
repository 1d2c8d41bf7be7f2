import { lengthOf } from "@devmesh/contracts/model/duration";
import type { RuleCondition } from "@devmesh/contracts/model/rule";
import { expect, test } from "@jest/globals";
import type { StoredAlert } from "../src/store/alert-store.ts";
import { type EvaluatedMesh, ruleOn, startEvaluation } from "./evaluation-fixture.ts";
import { randomNumbers } from "./random-numbers.ts";

const value = { kind: "value", topic: "t", pointer: "/c" } as const;

const rules: readonly (readonly [string, RuleCondition, length?: string])[] = [
  ["a bound", { ...value, is: ">", than: 5 }],
  ["a bound that is included", { ...value, is: "<=", than: 3 }],
  ["a bound, for some time", { ...value, is: ">=", than: 5 }, "PT20S"],
  ["a bound with another one to clear", { ...value, is: ">", than: 7, clear_at: 3 }],
  ["another bound to clear, for some time", { ...value, is: "<", than: 3, clear_at: 6 }, "PT30S"],
  ["a range", { ...value, is: "outside", than: [2, 8] }],
  ["one value", { ...value, is: "==", than: 4 }],
  ["silence", { kind: "silent", topic: "t", longer_than: "PT20S" }],
  ["events", { kind: "event", name: "offline", count: 2, within: "PT40S" }],
];

/** What the running rule did, as a trial lists it. */
function firingsOf(changed: readonly StoredAlert[]): string[] {
  const firings = new Map<string, string>();
  for (const { rule_id, device_id, fired_at, cleared_at, value: shown } of changed) {
    if (rule_id !== "rule") continue;
    const from = new Date(fired_at ?? 0).toISOString();
    const until = cleared_at === null ? null : new Date(cleared_at).toISOString();
    firings.set(`${device_id} ${from}`, JSON.stringify({ device_id, from, until, value: shown }));
  }
  return [...firings.values()].sort();
}

/** Random records and events of three devices for some minutes, with at most one of a device in a round. */
async function live({ publish, publishEvent, pass, now }: EvaluatedMesh, seed: number): Promise<void> {
  const random = randomNumbers(seed);
  for (let at = 0; at < 60; at++) {
    for (const id of ["fan", "lamp", "pump"]) {
      if (random(4) === 0) continue;
      const message = random(10) === 0 ? { other: 1 } : { c: random(11) };
      publish(id, random(5) === 0 ? "other" : "t", message, now() + random(1_000));
      if (random(5) === 0) publishEvent("offline", id);
    }
    await pass(1 + (random(6) === 0 ? random(45) : random(12)));
  }
}

test.each(rules)("a trial finds what the running rule did: %s", async (_, when, length = "PT0S") => {
  for (const seed of [1, 2, 3, 4]) {
    await using fixture = await startEvaluation(ruleOn(when, { for: length, forMs: lengthOf(length) }));
    for (const id of ["fan", "lamp", "pump"]) fixture.addDevice(id);
    await fixture.pass(3);
    await live(fixture, seed);
    const trial = await fixture.try(fixture.clock.monotonicMs() + 3_600_000);
    const found = trial.firings.map((firing) => JSON.stringify(firing)).sort();
    expect(found.length).toBeGreaterThan(0);
    expect({ seed, found }).toEqual({ seed, found: firingsOf(fixture.changed) });
  }
});
