import { describe, expect, test } from "@jest/globals";
import { parseDeviceTopic, replyingDevice } from "../src/device-topics.ts";

describe("the topic of a reply", () => {
  test.each(["pump/r/rpc", "pump/r/one/rpc"])("%s names the device that answers", (topic) => {
    expect(replyingDevice(topic, "one")).toBe("pump");
  });

  test.each([
    "*/r/rpc",
    ">/r/rpc",
    "db/r/rpc",
    "/r/rpc",
    "pump/r/two/rpc",
    "pump/r/*/rpc",
    "pump/rpc",
    "pump/r/rpc/x",
    "-x/r/rpc",
    "a.b/r/rpc",
  ])("%s is no reply to this replica", (topic) => {
    expect(replyingDevice(topic, "one")).toBeNull();
  });
});

const levels = (topic: string) => topic.split("/");

describe("the topic of a device message", () => {
  test("tells what the device says", () => {
    expect(parseDeviceTopic(levels("pump/shadow/update"))).toEqual({
      kind: "shadow_update",
      deviceId: "pump",
    });
    expect(parseDeviceTopic(levels("pump/shadow/get"))).toEqual({ kind: "shadow_get", deviceId: "pump" });
    expect(parseDeviceTopic(levels("pump/event/door/open"))).toEqual({
      kind: "event",
      deviceId: "pump",
      name: "door/open",
    });
    expect(parseDeviceTopic(levels("pump/event/v1.2"))).toEqual({
      kind: "event",
      deviceId: "pump",
      name: "v1.2",
    });
  });

  test.each([
    "pump/shadow/update/accepted",
    "pump/shadow",
    "pump/event",
    "pump/event/",
    "pump/event//x",
    "pump/event/*",
    "pump/event/>/x",
    "pump/event/+",
    "*/shadow/update",
    "pump/*/update",
    "pump/shadow/>",
    "db/shadow/update",
    "DB/event/x",
    "$SYS/event/x",
    "",
    `pump/event/${"x".repeat(257)}`,
  ])("%s is none", (topic) => {
    expect(parseDeviceTopic(levels(topic))).toBeNull();
  });
});
