import { discoverySubjects, eventSubject, methodSubject, queueSubject } from "@devmesh/service-kit/subjects";
import { describe, expect, test } from "@jest/globals";
import { kickSubject } from "../src/broker-subjects.ts";
import { topicLevels } from "../src/device-topic.ts";

describe("a subject", () => {
  test.each(["", "a.b", "a b", "*", ">", "a*", "ä", "a\r\nb", "x".repeat(129)])(
    "is never built from %j",
    (token) => {
      expect(() => methodSubject({ service: token, version: 1 }, "greet")).toThrow(TypeError);
      expect(() => methodSubject({ service: "greeter", version: 1 }, token)).toThrow(TypeError);
      expect(() => eventSubject("greeter", "visited", token, {})).toThrow(TypeError);
      expect(() => queueSubject(token)).toThrow(TypeError);
      expect(() => discoverySubjects("PING", "greeter", token)).toThrow(TypeError);
      expect(() => kickSubject(token)).toThrow(TypeError);
    },
  );
});

describe("the levels of an MQTT topic", () => {
  test.each([
    ["db.pump-1.temp", ["db", "pump-1", "temp"]],
    ["db.pump-1.a//b", ["db", "pump-1", "a.b"]],
    ["db.pump-1.//a////b//", ["db", "pump-1", ".a..b."]],
    ["db.pump-1./.x", ["db", "pump-1", "", "x"]],
  ])("of the subject %s are %j", (subject, levels) => {
    expect(topicLevels(subject)).toEqual(levels);
  });

  test.each(["db.*", "db.pump-1.>", "*.shadow.update", "", "a..b"])(
    "of the subject %j cannot be told",
    (subject) => {
      expect(topicLevels(subject)).toBeNull();
    },
  );
});
