import { executionStates } from "@devmesh/contracts/model/execution";
import { describe, expect, test } from "@jest/globals";
import { array, assert, constantFrom, integer, property, record } from "fast-check";
import { type ExecutionEvent, nextExecution } from "../src/executions/execution-states.ts";
import type { StoredExecution } from "../src/store/execution-store.ts";
import { claimed, newExecution } from "./execution-store.suite.ts";

const at = 3_000;
const events: Readonly<Record<string, ExecutionEvent>> = {
  claimed: { kind: "claimed", at, dueAt: 9_000 },
  "put back": { kind: "put_back" },
  "a result": { kind: "answered", at, answer: { sent: true, outcome: "result", result: 5 } },
  "an error": {
    kind: "answered",
    at,
    answer: { sent: true, outcome: "error", error: { code: 500, message: "hot" } },
  },
  "no such function": { kind: "answered", at, answer: { sent: true, outcome: "no_such_function" } },
  unreadable: { kind: "answered", at, answer: { sent: true, outcome: "unreadable" } },
  patched: { kind: "patched", dueAt: 9_000 },
  reported: { kind: "reported", at },
  postponed: { kind: "postponed", until: 9_000 },
  "gone on": { kind: "progressed", stage: "rebooting" },
  installed: { kind: "installed", at, reason: null },
  "rolled back": { kind: "update_failed", at, reason: "rolled_back" },
  unanswered: { kind: "unanswered", at },
  refused: { kind: "refused", at, reason: "frame_too_large" },
  expired: { kind: "expired", at },
  cancelled: { kind: "cancelled", at, reason: "by_request" },
};

/** The states that each event leads to, from the two that are not final. */
const arrows: Readonly<Record<string, readonly [fromQueued: string | null, fromSent: string | null]>> = {
  claimed: ["sent", null],
  "put back": [null, "queued"],
  "a result": [null, "succeeded"],
  "an error": [null, "failed"],
  "no such function": [null, "failed"],
  unreadable: [null, "failed"],
  patched: [null, "sent"],
  reported: [null, "succeeded"],
  postponed: ["queued", null],
  // It is no update.
  "gone on": [null, null],
  installed: [null, "succeeded"],
  "rolled back": [null, "failed"],
  unanswered: [null, "timed_out"],
  refused: ["failed", "failed"],
  expired: ["expired", null],
  cancelled: ["cancelled", "cancelled"],
};

describe("states of an execution", () => {
  test.each(Object.keys(events))("%s leads where it may, and from no final state", (name) => {
    const event = events[name] as ExecutionEvent;
    const queued = newExecution("pump");
    const to = (from: StoredExecution) => nextExecution(from, event)?.state ?? null;
    expect([to(queued), to(claimed(queued))]).toEqual(arrows[name]);
    for (const state of executionStates.slice(2)) expect(to({ ...queued, state, ended_at: 1 })).toBeNull();
  });

  test("whatever happens, a final state stays, and only its number of attempts was sent", () => {
    const step = record({
      event: constantFrom(...Object.values(events)),
      later: integer({ min: 0, max: 90_000 }),
    });
    const happen = property(
      integer({ min: 1, max: 4 }),
      array(step, { maxLength: 60 }),
      (max_attempts, steps) => {
        let execution = newExecution("pump", { max_attempts });
        let now = 1_000;
        let sent = 0;
        for (const { event, later } of steps) {
          now += later;
          const next = nextExecution(execution, "at" in event ? { ...event, at: now } : event);
          if (next === null) continue;
          expect(next.revision).toBe(execution.revision + 1);
          expect(execution.ended_at).toBeNull();
          if (event.kind === "claimed") sent++;
          if (event.kind === "put_back") sent--;
          execution = next;
          expect(execution.attempts).toBe(sent);
          expect(execution.attempts <= max_attempts).toBe(true);
          expect(execution.ended_at !== null).toBe(!["queued", "sent"].includes(execution.state));
          expect(execution.due_at !== null).toBe(execution.state === "sent");
          if (execution.state === "expired") expect(sent).toBe(0);
        }
      },
    );
    void assert(happen, { numRuns: 500 });
  });

  test("an unanswered attempt is followed by another where one is left and there is time", () => {
    const first = claimed(newExecution("pump", { max_attempts: 2 }));
    const again = nextExecution(first, { kind: "unanswered", at });
    expect(again).toMatchObject({ state: "queued", attempts: 1, not_before: at + 60_000, due_at: null });
    const failed = nextExecution(first, events["an error"] as ExecutionEvent);
    expect(failed).toMatchObject({ state: "failed", reason: "device_error" });
    const late = nextExecution(first, { kind: "unanswered", at: 99_000 });
    expect(late).toMatchObject({ state: "timed_out", reason: "no_answer" });
    const expired = again && nextExecution(again, { kind: "expired", at: 100_000 });
    expect(expired).toMatchObject({ state: "timed_out", reason: "no_answer", attempts: 1 });
  });

  test("an error of the device is followed by another attempt where the job says so", () => {
    const retry = { on: ["failed"] as const, after_ms: 5_000 };
    const first = claimed(newExecution("pump", { max_attempts: 2, retry }));
    const again = nextExecution(first, events["an error"] as ExecutionEvent);
    expect(again).toMatchObject({ state: "queued", attempts: 1, not_before: at + 5_000, error: null });
    const silent = nextExecution(first, { kind: "unanswered", at });
    expect(silent).toMatchObject({ state: "timed_out" });
  });

  test("a change of the shadow that is not reported in time says so", () => {
    const action = { kind: "shadow", patch: { tags: {} }, wait_for_report: true, timeout: "PT1M" } as const;
    const first = claimed(newExecution("pump", { action, job_id: "job" }));
    const patched = nextExecution(first, { kind: "patched", dueAt: 63_000 });
    expect(patched).toMatchObject({ state: "sent", stage: "reporting", due_at: 63_000 });
    const end = patched && nextExecution(patched, { kind: "unanswered", at });
    expect(end).toMatchObject({ state: "timed_out", reason: "not_reported", stage: null });
  });

  test("an attempt that never was is taken back with its time", () => {
    const queued = newExecution("pump");
    const back = nextExecution(claimed(queued), { kind: "put_back" });
    expect(back).toEqual({ ...queued, revision: 3 });
  });

  test("a result of more than 64 KB is dropped, of more than 4 KB in a job", () => {
    const result = (text: string, job_id: string | null = null) =>
      nextExecution(claimed(newExecution("pump", { job_id })), {
        kind: "answered",
        at,
        answer: { sent: true, outcome: "result", result: text },
      });
    expect(result("x".repeat(65_534))).toMatchObject({ state: "succeeded", result: expect.any(String) });
    expect(result("x".repeat(65_535))).toMatchObject({
      state: "succeeded",
      result: null,
      result_dropped: true,
    });
    expect(result("x".repeat(4_094), "job")).not.toHaveProperty("result_dropped");
    expect(result("x".repeat(4_095), "job")).toMatchObject({ result: null, result_dropped: true });
  });
});
