import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import {
  type Dialect,
  deviceOfClientId,
  deviceTopics,
  native,
  originOfClientId,
  type TopicDeclaration,
  topicParser,
} from "../src/mqtt.ts";

const topics = Object.entries<TopicDeclaration>(native.topics);
const levels = (topic: string) => topic.split("/");

describe("the table of topics", () => {
  test.each(topics)("has examples of %s that its payload takes", (_, { payload, examples }) => {
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) expect(payload?.safeParse(example).error).toBeUndefined();
  });

  test("builds a topic by its name", () => {
    expect(deviceTopics.call("pump-1")).toBe("pump-1/rpc");
    expect(deviceTopics.reply("pump-1", "x4")).toBe("pump-1/r/x4/rpc");
    expect(deviceTopics.record("pump-1", "temp/in")).toBe("db/pump-1/temp/in");
  });

  test("lets no device publish where the mesh does", () => {
    const pattern = (topic: string) =>
      new RegExp(`^${topic.replace(/\{[^}]+\.\.\.\}$/, ".+").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`);
    const ofDevices = topics.filter(([, { from }]) => from === "device");
    const ofMesh = topics.filter(([, { from }]) => from === "mesh");
    for (const [, { topic }] of ofMesh)
      for (const [name, device] of ofDevices)
        expect([name, topic, pattern(device.topic).test(topic.replace("{id}", "pump-1"))]).toEqual([
          name,
          topic,
          false,
        ]);
  });
});

describe("a parser of topics", () => {
  test("finds the kind, the device and the name of what one service takes", () => {
    const parse = topicParser(native, "rpc-bridge");
    expect(parse(levels("pump/shadow/get"))).toEqual({ kind: "shadowGet", deviceId: "pump", name: "" });
    expect(parse(levels("pump/event/door/open"))).toEqual({
      kind: "event",
      deviceId: "pump",
      name: "door/open",
    });
    for (const other of ["db/pump/temp", "pump/r/x4/rpc", "pump/event", "pump/shadow/get/x", "pump"])
      expect([other, parse(levels(other))]).toEqual([other, null]);
    expect(topicParser(native, "data")(levels("db/pump/temp"))?.kind).toBe("record");
  });

  test("takes another dialect as another table", () => {
    const common = {
      qos: "any",
      takenBy: "rpc-bridge",
      payload: z.object({}),
      summary: "",
      examples: [],
    } as const;
    const dialect = {
      topics: {
        update: { topic: "$things/{id}/shadow/update", from: "device", ...common },
        named: { topic: "$things/{id}/shadow/name/{shadow}/update", from: "device", ...common },
      },
      subscribe: { allow: ["$things/{id}/shadow/#"], deny: [] },
    } as const satisfies Dialect;
    const parse = topicParser(dialect, "rpc-bridge");
    expect(parse(levels("$things/pump/shadow/update"))).toEqual({
      kind: "update",
      deviceId: "pump",
      name: "",
    });
    expect(parse(levels("$things/pump/shadow/name/app/update"))?.kind).toBe("named");
    expect(parse(levels("pump/shadow/update"))).toBeNull();
  });
});

test.each([
  ["pump", "own"],
  ["pump:a-1:b_2", "own"],
  [`pump:${"x".repeat(64)}`, "own"],
  [`pump:${"x".repeat(65)}`, "foreign"],
  ["pump:", "foreign"],
  ["pump:a b", "foreign"],
  ["pump-2", "foreign"],
  ["pump2:a", "foreign"],
  ["", "foreign"],
  ["A1b2C3d4E5f6G7h8I9j0Kl", "generated"],
] as const)("the client id %p of the device pump is its %s", (clientId, origin) => {
  expect(originOfClientId(clientId, "pump")).toBe(origin);
  if (origin === "own") expect(deviceOfClientId(clientId)).toBe("pump");
});
