import { describe, expect, test } from "@jest/globals";
import { emptyJob, readJob, type TypedJob } from "../src/features/jobs/typed-job.ts";

const typed: TypedJob = { ...emptyJob, func: "Fan.Set", params: '{"on": true}', where: "label:barn" };

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

  test("sends firmware, with durations as people type them", () => {
    const firmware = { ...typed, kind: "firmware", firmware_id: "f-1" } as const;
    expect(readJob(firmware).body?.action).toEqual({ kind: "firmware", firmware_id: "f-1", via: "url" });
    const { body } = readJob({
      ...firmware,
      via: "push",
      confirm_rpc: "Sys.GetInfo",
      confirm_pointer: "/fw_id",
      confirm_shadow: "/not/sent",
      commit: "OTA.Keep",
      stable: "90 s",
      timeout: "2 h",
      chunk: 512,
      continuous: true,
      attempts: 5,
      retry_after: "5 min",
      expires_in: "30 d",
    });
    expect(body).toMatchObject({
      action: {
        kind: "firmware",
        firmware_id: "f-1",
        via: "push",
        confirm: { rpc: "Sys.GetInfo", pointer: "/fw_id" },
        commit: "OTA.Keep",
        stable: "PT90S",
        timeout: "PT2H",
        chunk: 512,
      },
      continuous: true,
      retry: { attempts: 5, after: "PT5M" },
      expires_in: "P30D",
    });
  });

  test("changes single labels", () => {
    const labels = { ...typed, kind: "labels", add: ["site-7"] } as const;
    expect(readJob(labels).body?.action).toEqual({
      kind: "shadow",
      patch: { labels: { add: ["site-7"] } },
    });
    expect(Object.keys(readJob({ ...labels, remove: ["site-7"] }).faults)).toEqual(["remove"]);
    expect(readJob({ ...labels, add: [] }).body).toBeNull();
  });

  test("has its faults at the fields that they come from", () => {
    const faultsOf = (changes: Partial<TypedJob>) => Object.keys(readJob({ ...typed, ...changes }).faults);
    expect(faultsOf({ where: "labl:barn:" })).toEqual(["where"]);
    expect(faultsOf({ params: "{" })).toEqual(["params"]);
    expect(faultsOf({ func: "" })).toEqual(["func"]);
    expect(faultsOf({ target: "ids" })).toEqual(["ids"]);
    expect(faultsOf({ stages: "50, 20" })).toEqual(["stages"]);
    expect(faultsOf({ kind: "shadow", desired: "[]" })).toContain("desired");
    const firmware = { kind: "firmware", firmware_id: "f-1" } as const;
    expect(faultsOf({ ...firmware, firmware_id: "" })).toEqual(["firmware_id"]);
    expect(faultsOf({ ...firmware, stable: "soon" })).toEqual(["stable"]);
    expect(faultsOf({ ...firmware, via: "shadow", confirm_shadow: "/tags/x" })).toEqual(["confirm_shadow"]);
    expect(faultsOf({ expires_in: "1 s" })).toEqual(["expires_in"]);
    expect(faultsOf({ attempts: 0 })).toEqual(["attempts"]);
    expect(faultsOf({ failed_percent: 0 })).toEqual(["failed_percent"]);
  });
});
