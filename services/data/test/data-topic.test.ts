import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { parseDataSubject, topicOfSubject } from "../src/data-topic.ts";

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

describe("the topic behind a subject", () => {
  test.each([
    ["db.pump.temp", "db/pump/temp"],
    ["db.pump.a//b", "db/pump/a.b"],
    ["db.pump./", "db/pump/"],
    ["db.pump./.x", "db/pump//x"],
    ["db.pump.a./.b", "db/pump/a//b"],
    ["db.pump.a//", "db/pump/a."],
    ["db.pump.a//./", "db/pump/a./"],
    ["db.pump.////", "db/pump/.."],
  ])("%s came from %s", (subject, topic) => {
    expect(topicOfSubject(subject)).toBe(topic);
  });

  test("is restored exactly for any topic below a device", () => {
    const level = fc.oneof(
      fc.constantFrom("", ".", "..", "a", "a.b", ".a", "a.", "é", "😀", "$x"),
      fc.string({ unit: fc.constantFrom("a", ".", "$", "é"), maxLength: 6 }),
    );
    fc.assert(
      fc.property(fc.array(level, { minLength: 1, maxLength: 6 }), (levels) => {
        const topic = `db/pump/${levels.join("/")}`;
        expect(topicOfSubject(subjectOfTopic(topic))).toBe(topic);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a subject below db", () => {
  test("names the device and the topic", () => {
    expect(parseDataSubject("db.pump-1.temp.in")).toEqual({ deviceId: "pump-1", topic: "db/pump-1/temp/in" });
  });

  test.each([
    ["db.pump", "no_name"],
    ["db", "no_device"],
    ["db.db.x", "no_device"],
    ["db.-x.y", "no_device"],
    ["db.a//b.y", "no_device"],
    ["db./.x", "no_device"],
    ["dbx.pump.y", "no_device"],
    ["db.*.y", "wildcard"],
    ["db.pump.*", "wildcard"],
    ["db.pump.a.>", "wildcard"],
  ])("%s is not stored: %s", (subject, why) => {
    expect(parseDataSubject(subject)).toBe(why);
  });

  test("a star inside a token is no wildcard", () => {
    expect(parseDataSubject("db.pump.a*b")).toEqual({ deviceId: "pump", topic: "db/pump/a*b" });
  });
});
