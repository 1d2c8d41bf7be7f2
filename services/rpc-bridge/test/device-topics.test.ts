import { describe, expect, test } from "@jest/globals";
import { parseDeviceTopic } from "../src/device-topics.ts";

const levels = (topic: string) => topic.split("/");

describe("the topic of a device message", () => {
  test("recognises what the device publishes", () => {
    expect(parseDeviceTopic(levels("pump/shadow/update"))).toEqual({
      kind: "shadowUpdate",
      deviceId: "pump",
      name: "",
    });
    expect(parseDeviceTopic(levels("pump/shadow/get"))).toEqual({
      kind: "shadowGet",
      deviceId: "pump",
      name: "",
    });
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
