import { Alert } from "@devmesh/contracts/model/alert";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { expect, test } from "@jest/globals";
import { activityOf } from "../src/features/devices/page/activity.ts";
import { deviceOf, diagnosisOf } from "./devices.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 31, 12, 0, second)).toISOString();

test("what happened to a device is one list, newest first, with each call once", () => {
  const before = deviceOf("pump");
  const { shadow } = before;
  const after = {
    ...before,
    shadow: {
      ...shadow,
      version: shadow.version + 1,
      state: { ...shadow.state, desired: { app: { level: 5 } } },
    },
  };
  const reports = (reported: JsonObject) => ({
    ...after,
    shadow: {
      ...after.shadow,
      state: { ...after.shadow.state, reported: { ...after.shadow.state.reported, ...reported } },
    },
  });
  const work = {
    id: "e1",
    device_id: "pump",
    job_id: null,
    action: { kind: "rpc", func: "Pump.Stop" },
    state: "sent",
    reason: null,
    attempts: 1,
    max_attempts: 1,
    stage: null,
    percent: null,
    result: null,
    error: null,
    created_at: at(1),
    created_by: { kind: "master", key_id: "k" },
    sent_at: at(2),
    ended_at: null,
    expires_at: at(59),
  };
  const frame = (seq: number, name: string, data: unknown, second: number) => ({
    seq,
    id: "pump",
    name,
    data: JSON.parse(JSON.stringify(data)),
    timestamp: at(second),
  });
  const activity = activityOf({
    diagnostics: [diagnosisOf(at(1), { name: "connected", reason: null })],
    frames: [
      frame(1, "updated", before, 2),
      frame(2, "updated", after, 3),
      frame(3, "rpc.in.RPC.List", null, 4),
      frame(4, "rpc.in.Pump.Start", { seconds: 3 }, 5),
      frame(5, "rpc.in.Pump.Stop", null, 30),
      frame(6, "rpc.out.alarm", { celsius: 91 }, 31),
      frame(7, "online", {}, 32),
      frame(8, "updated", reports({ ota: { percent: 10 } }), 33),
      frame(9, "updated", reports({ ota: { percent: 20 } }), 34),
      frame(10, "updated", reports({ ota: { fw_version: "2", percent: null } }), 35),
      frame(11, "execution", work, 36),
      frame(12, "execution", { ...work, state: "timed_out", reason: "no_answer", ended_at: at(37) }, 37),
      frame(13, "alert", { ...Object(Alert.meta()?.example), rule_name: "Warm", value: 91 }, 38),
    ],
    calls: [
      {
        func: "Pump.Start",
        params: "",
        timeout: 1_000,
        startedAt: Date.parse(at(5)),
        tookMs: 44,
        outcome: { kind: "answered", result: { on: true } },
      },
    ],
  });
  expect(activity.map(({ kind, title, detail }) => [kind, title, detail])).toEqual([
    ["alert", "Alert Warm", "firing, 91"],
    ["problem", "Work no answer", "Pump.Stop: it was sent, and nobody knows whether the device did it"],
    ["change", "Reported state changed", expect.stringContaining("ota.fw_version")],
    ["event", "Event alarm", '{"celsius":91}'],
    ["call", "Called Pump.Stop", ""],
    ["call", "Called Pump.Start", '{"on":true} in 44 ms'],
    ["change", "Desired state changed", "app.level – → 5"],
    ["change", "Changed", `shadow version ${shadow.version}`],
    ["connected", "Connected", expect.stringContaining("from 10.0.0.7")],
  ]);
});
