import { JobInput } from "@devmesh/contracts/model/job";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import { array, assert, constantFrom, integer, property, record } from "fast-check";
import { OpenJobs } from "../src/rollout/open-jobs.ts";
import { createStoredJob, hasFailedTooMuch, nextStep, patchJob, placeOf } from "../src/rollout/rollout.ts";
import { isReported } from "../src/rollout/shadow-changes.ts";
import { noExecutions, type StateCounts, type StoredExecution } from "../src/store/execution-store.ts";
import type { StoredJob } from "../src/store/job-store.ts";

const by = { kind: "master", key_id: "k" } as const;

/** A job that begins to run with so many devices at the time 0. */
function running(devices: number, more: object = {}): StoredJob {
  const asked = JobInput.parse({ target: { where: {} }, action: { kind: "rpc", func: "Echo" }, ...more });
  const job = createStoredJob(asked, { id: "job", at: 0, by });
  const rate_at = -60_000 / (job.rollout.per_minute ?? 60_000);
  return { ...job, state: "running", planned: devices, devices, counted_from: noExecutions, rate_at };
}

const counts = (devices: number, ended: Partial<StateCounts> = {}): StateCounts => {
  const done = Object.values(ended).reduce((sum, count) => sum + count, 0);
  return { ...noExecutions, queued: devices - done, ...ended };
};

/** One step as the leader takes it. */
function step(job: StoredJob, counted: StateCounts, now: number): StoredJob {
  const next = nextStep(job, counted, now);
  return { ...next.job, released: next.job.released + next.release };
}

describe("stages", () => {
  test.each([
    [1, [1, 1, 1]],
    [3, [1, 2, 3]],
    [20, [1, 10, 20]],
    [1_000, [50, 500, 1_000]],
  ])("of %i devices let go %j", (devices, expected) => {
    let job = running(devices, { rollout: { stages: [{ percent: 5 }, { percent: 50 }] } });
    const released = [];
    for (let at = 0; at < 3; at++) {
      job = step(job, counts(devices, { succeeded: job.released }), at);
      // Where no device is added, the next stage begins at once.
      released.push(job.released);
    }
    expect(released.filter((count, at) => count !== expected[at] && devices > 1)).toEqual([]);
    expect(released.at(-1)).toBe(devices);
  });

  test("the next one begins when enough have succeeded and the wait is over, not before", () => {
    const stages = [{ percent: 10, proceed_at: 80, wait: "PT1M" }];
    const first = step(running(100, { rollout: { stages } }), counts(100), 0);
    expect(first.released).toBe(10);
    expect(step(first, counts(100, { succeeded: 7, failed: 3 }), 1_000).stage).toBe(0);
    const met = step(first, counts(100, { succeeded: 8 }), 2_000);
    expect([met.stage, met.stage_met_at]).toEqual([0, 2_000]);
    expect(step(met, counts(100, { succeeded: 9 }), 61_999).released).toBe(10);
    expect(step(met, counts(100, { succeeded: 9 }), 62_000)).toMatchObject({ stage: 1, released: 100 });
  });

  test("a stage that holds pauses the job, which a person resumes", () => {
    const stages = [{ percent: 50, hold: true }];
    const first = step(running(2, { rollout: { stages } }), counts(2), 0);
    const held = step(first, counts(2, { succeeded: 1 }), 1);
    expect(held).toMatchObject({ state: "paused", why: "stage_hold", released: 1 });
    const resumed = patchJob(held, { state: "running" }, { at: 2, by });
    expect(resumed).toMatchObject({ state: "running", why: null, stage: 1 });
    expect(patchJob(held, { proceed: true }, { at: 2, by })).toMatchObject({ state: "running", stage: 1 });
    const counted = resumed && step(resumed, counts(2, { succeeded: 1 }), 3);
    expect(counted && step(counted, counts(2, { succeeded: 1 }), 4).released).toBe(2);
  });

  test("a person begins the next stage of a canary that sleeps", () => {
    const job = step(running(10, { rollout: { stages: [{ percent: 10 }] } }), counts(10), 0);
    const proceeded = patchJob(job, { proceed: true }, { at: 1, by });
    expect(proceeded).toMatchObject({
      stage: 1,
      log: [{ what: "created" }, { what: "proceeds to stage 2", by }],
    });
    expect(proceeded && step(proceeded, counts(10), 2).released).toBe(10);
  });
});

describe("rate", () => {
  test("no minute has more devices than it may, however the leader's steps come", () => {
    const steps = array(integer({ min: 1, max: 5_000 }), { minLength: 20, maxLength: 200 });
    const happen = property(integer({ min: 1, max: 3_000 }), steps, (per_minute, pauses) => {
      const devices = 1_000_000;
      let job = running(devices, { rollout: { per_minute } });
      const history: [number, number][] = [];
      let now = 0;
      for (const pause of pauses) {
        const before = job.released;
        job = step(job, counts(devices), now);
        history.push([now, job.released - before]);
        now += pause;
      }
      expect(history[0]?.[1]).toBe(1);
      // A second of arrears may be made up for at each end of a minute.
      const most = per_minute + Math.max(1, per_minute / 60) + 1;
      for (const [from] of history) {
        const within = history.filter(([at]) => at >= from && at < from + 60_000);
        expect(within.reduce((sum, [, count]) => sum + count, 0)).toBeLessThanOrEqual(most);
      }
    });
    void assert(happen, { numRuns: 200 });
  });

  test("what a pause held back is not made up for", () => {
    const job = step(running(1_000, { rollout: { per_minute: 60 } }), counts(1_000), 0);
    expect(job.released).toBe(1);
    expect(step(job, counts(1_000), 600_000).released).toBe(2);
  });
});

describe("the end", () => {
  test("a job pauses when too much has failed since it last ran", () => {
    const job = running(100, { pause_at: { failed_percent: 20, of_at_least: 5 } });
    expect(hasFailedTooMuch(job, counts(100, { failed: 4 }))).toBe(false);
    expect(hasFailedTooMuch(job, counts(100, { succeeded: 9, failed: 2 }))).toBe(false);
    const bad = counts(100, { succeeded: 8, failed: 1, timed_out: 1 });
    const paused = step(job, bad, 1);
    expect(paused).toMatchObject({ state: "paused", why: "failed_percent" });
    const resumed = patchJob(paused, { state: "running" }, { at: 2, by });
    const counted = resumed && step(resumed, bad, 3);
    expect(counted).toMatchObject({ state: "running", counted_from: bad });
    expect(counted && step(counted, bad, 4).released).toBe(100);
  });

  test("a job is done when nothing is open, and one that hit nobody says so", () => {
    expect(step(running(0), counts(0), 1)).toMatchObject({ state: "done", why: "no_devices", ended_at: 1 });
    const job = running(3, { rollout: { stages: [{ percent: 30 }] } });
    expect(step(job, counts(3, { expired: 3 }), 1)).toMatchObject({ state: "done", why: null });
    expect(step(running(0, { continuous: true }), counts(0), 1)).toMatchObject({ state: "running" });
  });

  test("an ended job is not changed, and a cancelled one keeps who did it", () => {
    const cancelled = patchJob(running(1), { state: "cancelled", force: true }, { at: 5, by });
    expect(cancelled).toMatchObject({ state: "cancelled", why: "by_request", ended_at: 5, force: true });
    expect(cancelled?.log.at(-1)).toEqual({ at: 5, by, what: "cancelled by force" });
    expect(cancelled && patchJob(cancelled, { state: "running" }, { at: 6, by })).toBeNull();
  });

  test("whatever callers and devices do, a job is in one state and never releases more than it has", () => {
    const patches = constantFrom(
      { state: "paused" as const },
      { state: "running" as const },
      { proceed: true as const },
      { rollout: { per_minute: 600 } },
      { rollout: { per_minute: null } },
    );
    const events = array(
      record({ patch: patches, asks: integer({ min: 0, max: 3 }), ends: integer({ min: 0, max: 9 }) }),
      {
        maxLength: 60,
      },
    );
    const happen = property(integer({ min: 0, max: 40 }), events, (devices, happened) => {
      const stages = [
        { percent: 10, hold: true },
        { percent: 50, wait: "PT5S" },
      ];
      let job = running(devices, { rollout: { stages } });
      let succeeded = 0;
      let now = 0;
      for (const { patch, asks, ends } of happened) {
        now += 1_000;
        if (asks === 0) job = patchJob(job, patch, { at: now, by }) ?? job;
        if (job.state === "running") succeeded = Math.min(job.released, succeeded + ends);
        const before = job.released;
        job = step(job, counts(devices, { succeeded }), now);
        expect(job.released).toBeLessThanOrEqual(devices);
        if (job.state !== "running") expect(job.released).toBe(before);
        expect(job.ended_at !== null).toBe(job.state === "done");
        if (job.state === "done") expect(succeeded).toBe(devices);
      }
    });
    void assert(happen, { numRuns: 300 });
  });
});

test("places of devices are random for each job, and spread", () => {
  const places = Array.from({ length: 1_000 }, (_, at) => placeOf("job", `d${at}`));
  expect(new Set(places).size).toBe(1_000);
  expect(places.every((place) => place >= 0 && place < 1)).toBe(true);
  const low = places.filter((place) => place < 0.5).length;
  expect(Math.abs(low - 500)).toBeLessThan(100);
  expect(placeOf("other", "d1")).not.toBe(placeOf("job", "d1"));
});

test("a patch is reported when none of its leaves is in the delta", () => {
  const desired = { app: { mode: "eco", list: [1], gone: null }, on: true };
  expect(isReported(desired, {})).toBe(true);
  expect(isReported(desired, { app: { other: 1 }, off: 1 })).toBe(true);
  expect(isReported(desired, { app: { gone: 1 } })).toBe(true);
  expect(isReported(desired, { app: { mode: "eco" } })).toBe(false);
  expect(isReported(desired, { app: { list: [1] } })).toBe(false);
  expect(isReported(desired, { on: true })).toBe(false);
});

test("counts that were read with a change that is noted later are not negative, and are read again", () => {
  const open = new OpenJobs(
    () => undefined,
    () => 0,
    new ManualClock(),
  );
  open.set(running(1), { ...noExecutions, cancelled: 1 });
  const queued = { job_id: "job", state: "queued", not_before: 0 } as StoredExecution;
  open.count({ ...queued, state: "cancelled" }, queued);
  const one = open.get("job");
  expect([one?.counts.queued, one?.countedMs]).toEqual([0, Number.NEGATIVE_INFINITY]);
});
