import type { Notification } from "@devmesh/contracts/model/notification";
import { describe, expect, test } from "@jest/globals";
import { ApiProblem, Unreachable } from "../src/api/api-problem.ts";
import { visibleDevice } from "../src/features/devices/page/access-section.tsx";
import { failedCall } from "../src/features/devices/page/call-outcome.ts";
import {
  emptyLog,
  frameWords,
  maxLogEntries,
  messageOf,
  withFrames,
} from "../src/features/devices/page/event-log.ts";
import { deviceOf, diagnosisOf } from "./devices.ts";

function frameOf(seq: number, id: string | null, name = "online"): Notification {
  return { seq, id, name, data: {}, timestamp: "2026-01-31T12:00:00.000Z" };
}

describe("a call that failed", () => {
  const problem = { status: 502, detail: "pump is dry", requestId: null, errors: [], code: -7 };

  test("is told in words, with the device's own code", () => {
    expect(failedCall(new ApiProblem({ ...problem, reason: "device_error" }))).toEqual({
      kind: "failed",
      title: "The device answered with an error (code -7)",
      detail: "pump is dry",
    });
    expect(failedCall(new ApiProblem({ ...problem, reason: "rpc_timeout" }))).toMatchObject({
      title: "The device did not answer in time",
    });
  });

  test("is told also when nothing answered, or something that no table knows", () => {
    expect(failedCall(new Unreachable(null))).toMatchObject({
      title: "The call failed",
      detail: "The server cannot be reached.",
    });
    expect(failedCall(new ApiProblem({ ...problem, reason: "rate_limited" }))).toMatchObject({
      title: "The call failed",
      detail: "pump is dry",
    });
  });
});

describe("the log of a device", () => {
  test("holds what concerns the device, newest first, and gaps", () => {
    const log = withFrames(emptyLog, "one", [
      frameOf(1, "one"),
      frameOf(2, "two"),
      frameOf(2, null, "gap"),
      frameOf(3, "one", "offline"),
    ]);
    expect(log.entries.map(({ frame }) => frame.name)).toEqual(["offline", "gap", "online"]);
    expect(withFrames(log, "one", [frameOf(4, "two")])).toBe(log);
  });

  test("names what happened in words", () => {
    const wordsOf = (name: string) => frameWords({ name }).words;
    expect(
      ["updated", "rpc.in.sum", "rpc.out.hot", "publication_refused", "of_a_later_release"].map(wordsOf),
    ).toEqual(["changed", "called sum", "event hot", "message dropped", "of_a_later_release"]);
  });

  test("shows of a frame its topic and its payload", () => {
    const lineOf = (name: string, data: unknown) => {
      const { topic, payload } = messageOf({ ...frameOf(1, "one", name), data: data as never });
      return [topic, payload];
    };
    expect(lineOf("rpc.in.sum", [1, 2])).toEqual(["one/rpc", "[1,2]"]);
    expect(lineOf("rpc.in.ping", null)).toEqual(["one/rpc", ""]);
    expect(lineOf("rpc.out.hot", { celsius: 93 })).toEqual(["one/event/hot", '{"celsius":93}']);
    const record = { id: 7, timestamp: "2026-01-31T12:00:00.000Z", device_id: "one", topic: "db/one/t" };
    expect(lineOf("data", { ...record, message: "21.5" })).toEqual(["db/one/t", "21.5"]);
    expect(lineOf("updated", deviceOf("one"))).toEqual([
      null,
      'shadow version 1 {"desired":{},"reported":{"online":false}}',
    ]);
    expect(lineOf("online", {})).toEqual([null, ""]);
    const refusal = { ...diagnosisOf("2026-01-31T12:00:00.000Z", { count: 3 }), name: undefined };
    expect(lineOf("login_refused", refusal)).toEqual([null, "wrong password, from 10.0.0.7, 3 times"]);
    expect(lineOf("connected", refusal)[1]).toContain('"reason":"wrong_password"');
  });

  test("drops the oldest and gives each entry a place of its own", () => {
    const frames = Array.from({ length: 300 }, (_, at) => frameOf(at, "one"));
    const log = withFrames(withFrames(emptyLog, "one", frames), "one", frames);
    expect(log.entries).toHaveLength(maxLogEntries);
    expect(log.total).toBe(600);
    expect(new Set(log.entries.map(({ position }) => position)).size).toBe(maxLogEntries);
  });
});

describe("what a public key sees", () => {
  const device = deviceOf("one", {
    shadow: {
      ...deviceOf("one").shadow,
      state: { desired: { app: { a: 1 }, "x/y": [1] }, reported: { online: true, sys: { fw: "1" } } },
      tags: { labels: ["hall"] },
    },
  });

  test("is what the pointers cover, with the objects on the way there", () => {
    const read = ["/state/desired/app", "/state/desired/x~1y", "/state/reported/online", "/tags"];
    expect(visibleDevice(device, { read })).toEqual({
      id: "one",
      shadow: {
        state: { desired: { app: { a: 1 }, "x/y": [1] }, reported: { online: true } },
        tags: { labels: ["hall"] },
      },
    });
  });

  test("is its id where the pointers cover nothing that is there", () => {
    const read = ["/state/desired/x~1y/0", "/state/reported/none"];
    expect(visibleDevice(device, { read })).toEqual({ id: "one", shadow: { state: {} } });
  });
});
