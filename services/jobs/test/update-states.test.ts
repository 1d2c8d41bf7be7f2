import { describe, expect, test } from "@jest/globals";
import { array, assert, boolean, constantFrom, integer, property, record } from "fast-check";
import { type ExecutionEvent, nextExecution } from "../src/executions/execution-states.ts";
import {
  nextReadingAt,
  stepAfter,
  stepBefore,
  stepConnected,
  stepGone,
  stepTransferred,
  stepUncommitted,
  type UpdateGoal,
  type UpdateStep,
} from "../src/executions/update-states.ts";
import { laneOf, type StoredExecution } from "../src/store/execution-store.ts";
import { claimed, newExecution } from "./execution-store.suite.ts";

const goal: UpdateGoal = { version: "2.0", stableMs: 60_000 };
const action = {
  kind: "firmware",
  firmware_id: "f",
  via: "push",
  stable: "PT1M",
  timeout: "PT1H",
  chunk: 2_048,
} as const;

const begun = (more: Partial<StoredExecution> = {}) =>
  claimed(newExecution("pump", { action, job_id: "job", expires_at: 1e9, ...more }));

/** An execution after steps, each of which must lead on. */
function after(execution: StoredExecution, ...steps: ((one: StoredExecution) => UpdateStep)[]) {
  return steps.reduce((one, step) => {
    const happened = step(one);
    if (happened.kind === "wait" || happened.kind === "commit") throw new Error(happened.kind);
    const next = nextExecution(one, happened);
    if (next === null) throw new Error(`${happened.kind} is not permitted`);
    return next;
  }, execution);
}

const from = (version: string | null) => () => stepBefore({ version, at: 3_000 }, goal);
const transferred = (one: StoredExecution) => stepTransferred(one, 60_000);
const read = (version: string | null, at: number) => (one: StoredExecution) =>
  stepAfter(one, { version, at }, goal);

describe("an update", () => {
  test("goes from the version before to the new one, which must last", () => {
    const got = after(begun(), from("1.0"), transferred);
    expect(got).toMatchObject({ stage: "rebooting", percent: 100, update: { from: "1.0", gone: false } });
    const seen = after(got, stepGone, read("2.0", 10_000));
    expect(seen).toMatchObject({ stage: "confirming", due_at: 10_000 + 60_000 + 600_000 });
    expect(nextReadingAt(seen, goal)).toBe(70_000);
    expect(read("2.0", 69_999)(seen)).toEqual({ kind: "wait" });
    expect(read("2.0", 70_000)(seen)).toEqual({ kind: "commit" });
    expect(after(seen, () => ({ kind: "installed", at: 70_000, reason: null }))).toMatchObject({
      state: "succeeded",
      stage: null,
      percent: 100,
      update: null,
    });
  });

  test("of a device that runs the firmware has succeeded before", () => {
    expect(after(begun(), from("2.0"))).toMatchObject({ state: "succeeded", reason: "already_installed" });
  });

  test("of a device that runs the firmware uncommitted is followed as if it had been sent", () => {
    const seen = after(begun(), () => stepUncommitted({ version: "2.0", at: 3_000 }, goal));
    expect(seen).toMatchObject({ stage: "confirming", due_at: 3_000 + 60_000 + 600_000 });
    expect(read("2.0", 62_999)(seen)).toEqual({ kind: "wait" });
    expect(read("2.0", 63_000)(seen)).toEqual({ kind: "commit" });
    const back = after(seen, read("1.0", 10_000));
    expect(after(back, read("1.0", 70_000))).toMatchObject({ state: "failed", reason: "other_version" });
  });

  test("to a device that reports the old version after it was away rolled back once that has lasted", () => {
    const back = after(begun(), from("1.0"), transferred, stepGone, read("1.0", 90_000));
    expect(back).toMatchObject({ stage: "rebooting", update: { since: 90_000 } });
    expect(read("1.0", 149_999)(back)).toEqual({ kind: "wait" });
    // A late report is none.
    expect(after(back, read("2.0", 149_999))).toMatchObject({ stage: "confirming" });
    const failed = after(back, read("1.0", 150_000));
    expect(failed).toMatchObject({ state: "failed", reason: "rolled_back", attempts: 1 });
    // It went again meanwhile: what it reported before counts no more.
    expect(after(back, stepGone).update).toMatchObject({ since: null });
  });

  test("to a device that reported the new version and then the old one rolled back", () => {
    const seen = after(begun({ max_attempts: 3 }), from("1.0"), read("2.0", 10_000));
    const retry = { on: ["failed", "timed_out"], after_ms: 1_000 } as const;
    expect(after({ ...seen, retry }, read("1.0", 11_000))).toMatchObject({
      state: "failed",
      reason: "rolled_back",
    });
  });

  test("to another version fails once that has lasted", () => {
    const other = after(begun(), from("1.0"), transferred, read("3.0", 10_000));
    expect(read("3.0", 69_999)(other)).toEqual({ kind: "wait" });
    expect(after(other, read("2.0", 69_999))).toMatchObject({ stage: "confirming" });
    expect(after(other, read("3.0", 70_000))).toMatchObject({ state: "failed", reason: "other_version" });
  });

  test("of a device that never goes waits, and ends as not rebooted; one that does not come back has no answer", () => {
    const got = after(begun(), from("1.0"), transferred);
    expect(read("1.0", 999_999)(got)).toEqual({ kind: "wait" });
    const unanswered: ExecutionEvent = { kind: "unanswered", at: 1e8 };
    expect(nextExecution(got, unanswered)).toMatchObject({ state: "timed_out", reason: "not_rebooted" });
    const gone = after(got, stepGone);
    expect(nextExecution(gone, unanswered)).toMatchObject({ state: "timed_out", reason: "no_answer" });
  });

  test("of a device that was away too shortly to be seen has its reboot by the time of its connection", () => {
    const got = after({ ...begun(), sent_at: 50_000 }, from("1.0"), transferred);
    const connected = (at: number) => (one: StoredExecution) => stepConnected(one, at);
    expect(connected(55_000)(got)).toEqual({ kind: "wait" });
    // A note of the transfer may come late, but not from before the attempt.
    const back = after(got, connected(55_001), read("1.0", 62_000));
    expect(back.update).toMatchObject({ gone: true, since: 62_000 });
    expect(connected(62_000)(back)).toEqual({ kind: "wait" });
    expect(after(back, connected(62_001)).update).toMatchObject({ since: null });
    const late = after({ ...begun(), sent_at: 58_000 }, from("1.0"), transferred);
    expect(connected(58_000)(late)).toEqual({ kind: "wait" });
  });

  test("a device that loses its connection while it fetches is not away", () => {
    const fetching = after(begun({ action: { ...action, via: "url" } }), from(null));
    expect(stepGone(fetching)).toEqual({ kind: "wait" });
    expect(stepConnected(fetching, 999_999)).toEqual({ kind: "wait" });
    expect(read(null, 999_999)(fetching)).toEqual({ kind: "wait" });
  });

  test("a device is busy until it has the file; one that fetches by its shadow is not", () => {
    const fetching = after(begun(), from("1.0"));
    expect(laneOf(fetching)).toBe("pump");
    expect(laneOf(after(fetching, transferred))).toBe("pump/job");
    expect(laneOf(after(begun({ action: { ...action, via: "shadow" } }), from("1.0")))).toBe("pump/job");
  });

  test("another attempt knows nothing of the one before", () => {
    const retry = { on: ["timed_out"], after_ms: 1_000 } as const;
    const got = after(begun({ retry, max_attempts: 2 }), from("1.0"), transferred);
    const queued = nextExecution(got, { kind: "unanswered", at: 5_000 });
    const none = { stage: null, percent: null, update: null };
    expect(queued).toMatchObject({ state: "queued", not_before: 6_000, ...none });
    expect(nextExecution(got, { kind: "put_back" })).toMatchObject({ state: "queued", attempts: 0, ...none });
  });

  test("whatever happens, stages and percent only grow, and it succeeds by its new version alone", () => {
    const step = record({
      kind: constantFrom("read", "gone", "connected", "transferred", "served", "late_stage", "unanswered"),
      version: constantFrom("1.0", "2.0", "3.0", null),
      later: integer({ min: 0, max: 90_000 }),
      percent: integer({ min: 0, max: 100 }),
    });
    const stages = ["preparing", "transferring", "rebooting", "confirming"];
    const happen = property(array(step, { maxLength: 60 }), boolean(), (steps, knows) => {
      let one = after(begun(), from(knows ? "1.0" : null));
      let at = 3_000;
      let newSince: number | null = null;
      for (const { kind, version, later, percent } of steps) {
        at += later;
        if (kind === "read") newSince = version === "2.0" ? (newSince ?? at) : null;
        const events: Record<typeof kind, () => UpdateStep> = {
          read: () => stepAfter(one, { version, at }, goal),
          gone: () => stepGone(one),
          transferred: () => stepTransferred(one, at),
          connected: () => stepConnected(one, at),
          served: () => ({ kind: "progressed", percent }),
          late_stage: () => ({ kind: "progressed", stage: "transferring" }),
          unanswered: () => ({ kind: "unanswered", at }),
        };
        const happened = events[kind]();
        if (happened.kind === "wait") continue;
        if (happened.kind === "commit") {
          expect(newSince !== null && at - newSince >= goal.stableMs).toBe(true);
          continue;
        }
        const next = nextExecution(one, happened);
        if (next === null) continue;
        if (next.state === "failed") expect(version).not.toBe("2.0");
        if (next.ended_at !== null) return;
        expect(stages.indexOf(String(next.stage))).toBeGreaterThanOrEqual(stages.indexOf(String(one.stage)));
        expect(next.percent ?? 0).toBeGreaterThanOrEqual(one.percent ?? 0);
        one = next;
      }
    });
    void assert(happen, { numRuns: 500 });
  });
});
