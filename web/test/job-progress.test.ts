import type { Execution } from "@devmesh/contracts/model/execution";
import { Job } from "@devmesh/contracts/model/job";
import { describe, expect, test } from "@jest/globals";
import { outcomeText, stateText } from "../src/features/devices/shared/execution-words.ts";
import { csvOfExecutions } from "../src/features/jobs/job-menu.tsx";
import { endedOf, paceOf, stagesOf, withSample } from "../src/features/jobs/job-progress-figures.ts";
import { countStages, transferredOf } from "../src/features/jobs/update-stages.tsx";

const created = Date.parse("2026-01-31T12:00:00.000Z");
const minute = 60_000;
const counts = { queued: 70, sent: 10, succeeded: 15, failed: 3, timed_out: 2, expired: 0, cancelled: 0 };
const rollout = { stages: [{ percent: 5, proceed_at: 90, wait: "PT0S", hold: false }] };
const job: Job = { ...(Job.meta()?.example as Job), rollout, devices: 100, released: 30, counts };

const execution: Execution = {
  id: "one",
  device_id: "pump-1",
  job_id: "job",
  action: {
    kind: "firmware",
    firmware_id: "f",
    via: "url",
    stable: "PT1M",
    timeout: "PT1H",
    chunk: 2048,
  },
  state: "sent",
  reason: null,
  stage: "transferring",
  percent: 40,
  attempts: 1,
  max_attempts: 3,
  result: null,
  error: null,
  created_at: "2026-01-31T12:00:00.000Z",
  created_by: { kind: "master", key_id: "k" },
  sent_at: null,
  ended_at: null,
  expires_at: "2026-02-07T12:00:00.000Z",
};

describe("the pace of a job", () => {
  test("is that since its creation, until it was seen for a while", () => {
    expect(endedOf(job)).toBe(20);
    expect(paceOf([], job, created + 10 * minute)).toEqual({ perMinute: 2, leftMs: 40 * minute });
    const seen = [{ at: created + 9 * minute, ended: 10 }];
    expect(paceOf(seen, job, created + 10 * minute)).toEqual({ perMinute: 10, leftMs: 8 * minute });
  });

  test("is unknown while nothing has ended", () => {
    const none = { ...job, counts: { ...counts, succeeded: 0, failed: 0, timed_out: 0 } };
    expect(paceOf([], none, created + minute)).toBeNull();
  });

  test("forgets what is long ago, and keeps what is new", () => {
    const samples = withSample([{ at: 0, ended: 1 }], { at: minute, ended: 2 });
    expect(withSample(samples, { at: 2 * minute, ended: 2 })).toBe(samples);
    expect(withSample(samples, { at: 11 * minute, ended: 3 })).toEqual([
      { at: minute, ended: 2 },
      { at: 11 * minute, ended: 3 },
    ]);
  });
});

test("the stages of a rollout have the devices up to their percentage, and how many were let go", () => {
  expect(stagesOf(job)).toEqual([
    { number: 1, percent: 5, devices: 5, upTo: 5, released: 1 },
    { number: 2, percent: 100, devices: 95, upTo: 100, released: 25 / 95 },
  ]);
  expect(stagesOf({ ...job, rollout: { stages: [] } })).toEqual([]);
});

test("the stages of updates are counted, with how much of the file the devices have", () => {
  const under = [execution, { ...execution, percent: 60 }, { ...execution, stage: "confirming" as const }];
  expect(countStages(under)).toEqual({ preparing: 0, transferring: 2, rebooting: 0, confirming: 1 });
  expect(transferredOf(under)).toBe(0.5);
  expect(transferredOf([{ stage: "transferring", percent: null }])).toBeNull();
});

test("an execution says its stage, and of firmware what became of it", () => {
  expect([stateText(execution), outcomeText(execution)]).toEqual([
    "transferring",
    "until the device has the file",
  ]);
  const ended = { ...execution, stage: null, percent: null } as const;
  expect(outcomeText({ ...ended, state: "succeeded" })).toBe("it reports the version");
  expect(outcomeText({ ...ended, state: "succeeded", reason: "already_installed" })).toBe(
    "it ran the version already",
  );
  expect(outcomeText({ ...ended, state: "failed", reason: "rolled_back" })).toBe(
    "it went back to the version before",
  );
  expect(csvOfExecutions([{ ...ended, state: "failed", reason: "not_eligible" }])[1]).toEqual([
    "pump-1",
    "failed",
    "not_eligible",
    "it is not what the firmware requires, or the file is not signed",
    "1",
    "",
  ]);
});
