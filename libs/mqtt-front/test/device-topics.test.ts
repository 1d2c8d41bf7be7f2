import { describe, expect, test } from "@jest/globals";
import { deviceTopicsOf } from "../src/topics/device-topics.ts";

const topics = deviceTopicsOf("pump-1");

describe("a device may publish", () => {
  test.each([
    ["db/pump-1/temp", { to: "batch", kind: "records" }],
    ["db/pump-1/a b/c.d/*/>", { to: "batch", kind: "records" }],
    ["db/pump-1/", { to: "batch", kind: "records" }],
    ["pump-1/shadow/update", { to: "batch", kind: "shadow" }],
    ["pump-1/shadow/get", { to: "batch", kind: "shadow" }],
    ["pump-1/event/button pressed", { to: "batch", kind: "events" }],
    ["pump-1/r/x4Tn8/rpc", { to: "replica", replica: "x4Tn8" }],
    ["pump-1/r/rpc", { to: "replica", replica: null }],
  ])("on %s", (topic, expected) => {
    expect(topics.destinationOf(topic)).toEqual({ ...expected, maxBytes: 262_144 });
  });

  test.each([
    "db/pump-1",
    "db/pump-2/temp",
    "db/pump-1.x/temp",
    "pump-2/event/x",
    "pump-1/event",
    "pump-1/shadow/delta",
    "pump-1/shadow/update/accepted",
    "pump-1/rpc",
    "pump-1/x",
    "pump-1",
    "r/rpc",
    "$SYS/x",
    "/db/pump-1/temp",
    "DB/pump-1/temp",
  ])("not on %s", (topic) => {
    expect(topics.destinationOf(topic)).toBe(null);
  });
});

describe("a device may subscribe", () => {
  test.each([
    "pump-1/#",
    "pump-1",
    "pump-1/rpc",
    "pump-1/+",
    "pump-1/+/x",
    "pump-1/shadow/delta",
    "pump-1/a b",
  ])("%s", (filter) => {
    expect(topics.maySubscribe(filter)).toBe(true);
  });

  test.each([
    "#",
    "+/rpc",
    "pump-2/#",
    "db/pump-1/#",
    "pump-1/rpc/#",
    "pump-1/rpc/x",
    "pump-1/rpc/+",
    "pump-1.x/#",
  ])("not %s", (filter) => {
    expect(topics.maySubscribe(filter)).toBe(false);
  });

  test("and Mongoose OS is refused its filter of calls without a word", () => {
    expect(["pump-1/rpc/#", "pump-1/rpc/x", "#"].map(topics.isRefusedQuietly)).toEqual([true, false, false]);
  });
});
