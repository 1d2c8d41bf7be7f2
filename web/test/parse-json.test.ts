import { describe, expect, test } from "@jest/globals";
import { describeFault, parseJson } from "../src/components/parse-json.ts";

function faultOf(text: string): string {
  const parsed = parseJson(text);
  return parsed.kind === "fault" ? describeFault(parsed.fault) : "none";
}

describe("JSON that somebody types", () => {
  test("is read as it is", () => {
    expect(parseJson(' {"a": [1, -2.5e3, "\\u00e9", null, true, {}]} ')).toEqual({
      kind: "value",
      value: { a: [1, -2500, "é", null, true, {}] },
    });
  });

  test.each([
    ["", "Line 1, column 1: a value is expected"],
    ['{\n  "a": 1\n  "b": 2\n}', "Line 3, column 3: a comma or } is expected"],
    ['{"a": 1,}', "Line 1, column 9: a member's name in double quotes is expected"],
    ["{a: 1}", "Line 1, column 2: a member's name in double quotes is expected"],
    ['{"a" 1}', "Line 1, column 6: a colon is expected"],
    ["[1, 2", "Line 1, column 6: a comma or ] is expected"],
    ["[1,\n  ]", "Line 2, column 3: a value is expected"],
    ['{"a": "b\n"}', 'Line 1, column 9: a closing " is expected'],
    ['["\\x"]', 'Line 1, column 3: an escape such as \\n, \\" or \\u00e9 is expected'],
    ['["\t"]', "Line 1, column 3: an escape such as \\t in place of a control character is expected"],
    ["[01]", "Line 1, column 3: a comma or ] is expected"],
    [
      '{"a": "1e400",\n "iccid": 89490200001234567891}',
      "Line 2, column 11: a text, or a number that a double holds, is expected",
    ],
    ["[1e400]", "Line 1, column 2: a text, or a number that a double holds, is expected"],
    ["{} {}", "Line 1, column 4: the end of the text is expected"],
  ])("%j is refused with the place", (text, told) => {
    expect(faultOf(text)).toBe(told);
  });

  test("that is nested without end exhausts nothing", () => {
    expect(faultOf("[".repeat(100_000))).toBe(
      "Line 1, column 202: a nesting of at most 200 levels is expected",
    );
  });
});
