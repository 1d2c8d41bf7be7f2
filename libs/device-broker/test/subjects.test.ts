import { discoverySubjects, eventSubject, methodSubject, queueSubject } from "@devmesh/service-kit/subjects";
import { describe, expect, test } from "@jest/globals";
import { kickSubject } from "../src/broker-subjects.ts";
import {
  deviceOfSubject,
  isRetainedByMesh,
  replySubjects,
  subjectsOfDevice,
  takenSubjects,
  topicLevels,
} from "../src/device-topic.ts";
import { devicePermissions } from "../src/permissions.ts";

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

describe("the topics of devices, as subjects", () => {
  test("are what a device may use, and no others", () => {
    expect(devicePermissions("pump-1")).toEqual({
      publish: {
        allow: [
          "pump-1.r.*.rpc",
          "pump-1.r.rpc",
          "pump-1.shadow.update",
          "pump-1.shadow.get",
          "db.pump-1.>",
          "pump-1.event.>",
        ],
        deny: [],
      },
      subscribe: { allow: ["pump-1", "pump-1.>"], deny: ["pump-1.rpc.>"] },
    });
  });

  test("are taken by one service each, but for replies", () => {
    expect(takenSubjects("data")).toEqual(["db.>"]);
    expect(takenSubjects("rpc-bridge")).toEqual(["*.shadow.update", "*.shadow.get", "*.event.>"]);
    expect(replySubjects).toEqual(["*.r.*.rpc", "*.r.rpc"]);
  });

  test("name their device", () => {
    expect(deviceOfSubject("pump-1.event.x")).toBe("pump-1");
    expect(deviceOfSubject("db.pump-1.x")).toBe("pump-1");
    expect(subjectsOfDevice("pump-1")).toEqual(["pump-1.>", "db.pump-1.>"]);
  });

  test("are retained by the mesh for a delta alone", () => {
    expect(isRetainedByMesh("pump-1.shadow.delta")).toBe(true);
    for (const own of ["pump-1.shadow.delta.x", "db.pump-1.shadow.delta", "pump-1.event.delta"])
      expect([own, isRetainedByMesh(own)]).toEqual([own, false]);
  });
});
