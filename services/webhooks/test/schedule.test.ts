import { expect, test } from "@jest/globals";
import { Health } from "../src/deliveries/health.ts";
import { nextStep, pauseOf, probeWait } from "../src/deliveries/schedule.ts";
import type { Outcome } from "../src/requests/sender.ts";
import { openSqliteWebhookStore } from "../src/store/webhook-store.sqlite.ts";
import { storedWebhook } from "./stored-webhook.ts";

const hour = 3_600_000;
const { signal } = new AbortController();
const failed = (status: number | null, retryAfterMs: number | null = null): Outcome => ({
  status,
  error: "x",
  retryAfterMs,
});

/** The waits in seconds until a delivery is given up, and its attempts, of a receiver that always answers so. */
function courseOf(outcome: Outcome) {
  const waits: number[] = [];
  let waitedMs = 0;
  for (let number = 1; ; number++) {
    const step = nextStep({ outcome, number, waitedMs, random: 0.5 });
    if (step.kind !== "retry") return { waits, attempts: number, end: step.kind, hours: waitedMs / hour };
    waits.push(step.delayMs / 1_000);
    waitedMs += step.delayMs;
  }
}

test("a delivery is tried after 5 s, 30 s, 2 min, 10 min, 30 min, then hourly, for 24 h", () => {
  const { waits, end, hours } = courseOf(failed(500));
  expect(waits.slice(0, 7)).toEqual([5, 30, 120, 600, 1_800, 3_600, 3_600]);
  expect([end, Math.floor(hours)]).toEqual(["dead", 24]);
  const jittered = [0, 1].map((random) =>
    nextStep({ outcome: failed(null), number: 1, waitedMs: 0, random }),
  );
  expect(jittered).toEqual([
    { kind: "retry", delayMs: 4_000 },
    { kind: "retry", delayMs: 6_000 },
  ]);
});

test("one that the receiver refuses is tried eight times, unless the refusal passes", () => {
  expect([400, 404, 422].map((status) => courseOf(failed(status)).attempts)).toEqual([8, 8, 8]);
  expect([408, 425, 429, 500].map((status) => courseOf(failed(status)).attempts > 20)).toEqual(
    Array(4).fill(true),
  );
});

test("410 ends it, and Retry-After of 429 and 503 pauses the webhook, for an hour at most", () => {
  expect(nextStep({ outcome: failed(410), number: 1, waitedMs: 0, random: 0 })).toEqual({ kind: "gone" });
  expect(pauseOf(failed(503, 90_000))).toBe(90_000);
  expect(pauseOf(failed(429, 9 * hour))).toBe(hour);
  expect(pauseOf(failed(500, 90_000))).toBeNull();
  const step = nextStep({ outcome: failed(429, 90_000), number: 1, waitedMs: 0, random: 0 });
  expect(step).toEqual({ kind: "retry", delayMs: 90_000 });
});

test("a webhook is probed after ten failures in a row: after 5 s, 30 s, then each minute", () => {
  expect([0, 9, 10, 11, 12, 500].map(probeWait)).toEqual([0, 0, 5_000, 30_000, 60_000, 60_000]);
});

test("a webhook is disabled after three days and twenty requests without success, not before", async () => {
  const store = openSqliteWebhookStore(":memory:");
  const disabled: string[] = [];
  const health = new Health({ store, onDisabled: async ({ id }) => void disabled.push(id) });
  for (const id of ["wh_few", "wh_many", "wh_mended"]) await store.insert(storedWebhook({ id }), 50, signal);
  const begin = 1_000;
  const fail = (id: string, at: number) => health.note(id, failed(500), at);
  fail("wh_few", begin);
  for (let at = 0; at < 19; at++) for (const id of ["wh_many", "wh_mended"]) fail(id, begin + at);
  await health.flush(begin, signal);
  health.note("wh_mended", { status: 200, error: null, retryAfterMs: null }, begin + 71 * hour);
  fail("wh_mended", begin + 71 * hour);
  fail("wh_many", begin + 71 * hour);
  await health.flush(begin + 71 * hour, signal);
  expect(disabled).toEqual([]);
  const end = begin + 72 * hour;
  for (const id of ["wh_few", "wh_many", "wh_mended"]) fail(id, end);
  await health.flush(end, signal);
  expect(disabled).toEqual(["wh_many"]);
  expect(await store.find("wh_many", signal)).toMatchObject({
    disabled_because: "failing",
    failing_since: begin,
    last_failure: { at: end, status: 500, error: "x" },
  });
  await store.close();
});
