import { describe, expect, test } from "@jest/globals";
import { covers, isShared, isValidFilter, matches, maxFilterBytes } from "../src/topics/topic-filter.ts";

const split = (text: string) => text.split("/");

describe("a topic filter", () => {
  test.each([
    ["a/b", "a/b", true],
    ["a/b", "a/b/c", false],
    ["a/+", "a/b", true],
    ["a/+", "a/", true],
    ["a/+", "a", false],
    ["a/#", "a", true],
    ["a/#", "a/b/c", true],
    ["a/+/#", "a/b", true],
    ["a/+/#", "a", false],
    ["#", "a/b", true],
    ["#", "$SYS/x", false],
    ["+/x", "$SYS/x", false],
    ["$SYS/#", "$SYS/x", true],
    ["a b.*/>", "a b.*/>", true],
    ["a/*", "a/b", false],
  ])("%s against %s: %s", (filter, topic, expected) => {
    expect(matches(split(filter), split(topic))).toBe(expected);
  });

  test.each(["", "a#", "a/#/b", "+a", "a/b+", "##", "x".repeat(maxFilterBytes + 1)])(
    "'%s' is invalid",
    (filter) => {
      expect(isValidFilter(filter)).toBe(false);
    },
  );

  test.each(["a", "/", "a//b", "+/+/#", "a b", "a/*/>", "$share"])("'%s' is valid", (filter) => {
    expect(isValidFilter(filter)).toBe(true);
  });

  test("of a shared subscription begins with $share", () => {
    expect(["$share/g/a", "$share", "$shared/a", "a/$share"].map(isShared)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  test.each([
    ["a/#", "a/#", true],
    ["a/#", "a", true],
    ["a/#", "a/+/b/#", true],
    ["a/#", "+/b", false],
    ["a/+", "a/b", true],
    ["a/+", "a/#", false],
    ["a/b", "a/+", false],
    ["a/+/c", "a/b", false],
  ])("%s covers %s: %s", (outer, inner, expected) => {
    expect(covers(split(outer), split(inner))).toBe(expected);
  });
});
