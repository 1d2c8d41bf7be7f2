import { topicLevels } from "@devmesh/device-broker/device-topic";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { parseDataTopic } from "../src/ingestion/message-check.ts";

/** What nats-server makes of a topic, after `mqttToNATSSubjectConversion` of its mqtt.go. */
function subjectOfTopic(topic: string): string {
  let subject = "";
  for (let at = 0; at < topic.length; at++) {
    const character = topic[at];
    if (character === ".") subject += "//";
    else if (character !== "/") subject += character;
    else if (at === 0 || subject.endsWith(".")) subject += "/.";
    else if (at === topic.length - 1 || topic[at + 1] === "/") subject += "./";
    else subject += ".";
  }
  return subject.endsWith(".") ? `${subject}/` : subject;
}

describe("the topic of a message", () => {
  test("is restored exactly for any topic below a device", () => {
    const level = fc.oneof(
      fc.constantFrom("", ".", "..", "a", "a.b", ".a", "a.", "é", "😀", "$x"),
      fc.string({ unit: fc.constantFrom("a", ".", "$", "é"), maxLength: 6 }),
    );
    fc.assert(
      fc.property(fc.array(level, { minLength: 1, maxLength: 6 }), (levels) => {
        const topic = `db/pump/${levels.join("/")}`;
        expect(parseDataTopic(topicLevels(subjectOfTopic(topic)) ?? [])).toEqual({ deviceId: "pump", topic });
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a topic below db", () => {
  test("names the device", () => {
    expect(parseDataTopic(["db", "pump-1", "temp", "in"])).toEqual({
      deviceId: "pump-1",
      topic: "db/pump-1/temp/in",
    });
    expect(parseDataTopic(["db", "pump", ""])).toEqual({ deviceId: "pump", topic: "db/pump/" });
  });

  test.each([
    ["db/pump", "no_name"],
    ["db", "no_device"],
    ["db/db/x", "no_device"],
    ["db/-x/y", "no_device"],
    ["db/a.b/y", "no_device"],
    ["db//x", "no_device"],
    ["dbx/pump/y", "no_device"],
  ])("%s is not stored: %s", (topic, why) => {
    expect(parseDataTopic(topic.split("/"))).toBe(why);
  });
});
