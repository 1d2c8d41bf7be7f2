import { describe, expect, test } from "@jest/globals";
import { readJob, type TypedJob } from "../src/features/jobs/typed-job.ts";

const typed: TypedJob = {
  name: "",
  kind: "rpc",
  func: "Fan.Set",
  params: '{"on": true}',
  desired: "",
  target: "where",
  where: "label:barn",
  ids: "",
  of_job: "",
  stages: "",
  hold: false,
  per_minute: "",
  concurrency: "",
  failed_percent: "",
};

describe("a job as it is typed", () => {
  test("is the body of a request, with what was given alone", () => {
    expect(readJob(typed)).toEqual({
      body: {
        target: { where: { labels: { all: ["barn"] } } },
        action: { kind: "rpc", func: "Fan.Set", params: { on: true } },
        rollout: {},
      },
      faults: {},
    });
    const { body } = readJob({
      ...typed,
      kind: "shadow",
      desired: '{"app": {"mode": "eco"}}',
      target: "ids",
      ids: "barn-1, barn-2\nbarn-1",
      stages: "5, 25 %",
      hold: true,
      per_minute: 60,
      failed_percent: 20,
    });
    expect(body).toEqual({
      target: { ids: ["barn-1", "barn-2"] },
      action: { kind: "shadow", patch: { state: { desired: { app: { mode: "eco" } } } } },
      rollout: {
        stages: [
          { percent: 5, hold: true },
          { percent: 25, hold: true },
        ],
        per_minute: 60,
      },
      pause_at: { failed_percent: 20 },
    });
  });

  test("has its faults at the fields that they come from", () => {
    const faultsOf = (changes: Partial<TypedJob>) => Object.keys(readJob({ ...typed, ...changes }).faults);
    expect(faultsOf({ where: "labl:barn:" })).toEqual(["where"]);
    expect(faultsOf({ params: "{" })).toEqual(["params"]);
    expect(faultsOf({ func: "" })).toEqual(["func"]);
    expect(faultsOf({ target: "ids" })).toEqual(["ids"]);
    expect(faultsOf({ stages: "50, 20" })).toEqual(["stages"]);
    expect(faultsOf({ kind: "shadow", desired: "[]" })).toContain("desired");
    expect(faultsOf({ failed_percent: 0 })).toEqual(["failed_percent"]);
  });
});
