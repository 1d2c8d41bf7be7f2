import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { checkNumbers, isKept } from "../src/model/exact-numbers.ts";
import { ViolationList } from "../src/model/violation.ts";

function pointersIn(json: string): string[] {
  const violations = new ViolationList();
  checkNumbers(json, violations);
  return violations.pointers;
}

describe("a number that would come out as another is found:", () => {
  test.each([
    "9007199254740993",
    "-9007199254740993",
    "89490200001234567891",
    "18446744073709551615",
    "18446744073709551616",
    "9007199254740993.0",
    "9.007199254740993e15",
    "9007199254740993000e-3",
    "12345678901234567890.5",
    "1e400",
    "-1E+400",
    `1${"0".repeat(210)}e99`,
    "9".repeat(400),
  ])("%s", (number) => {
    expect(pointersIn(number)).toEqual([""]);
    expect(pointersIn(` [ 1, { "a" : ${number} } ] `)).toEqual(["/1/a"]);
  });
});

describe("a number that comes out as it went in, or was rounded in its fraction, is not:", () => {
  test.each([
    "9007199254740992",
    "9007199254740994",
    "-9007199254740991",
    "1000000000000000000000000",
    "1e23",
    "1.0e23",
    "1E+308",
    "1e-400",
    "0.1e100",
    "1.7976931348623157e308",
    "0.12345678901234567890",
    "21.299999237060546875",
    "1738329123456.7891234",
    "0e999",
    "-0",
    '"9007199254740993"',
    '{"9007199254740993":1}',
    '"\\"9007199254740993"',
  ])("%s", (json) => {
    expect(pointersIn(json)).toEqual([]);
  });
});

test("pointers name members and indexes, in the order of the text", () => {
  const big = "9007199254740993";
  const json = `{"a/b":[${big},[],{},[1,${big}]],"~":{"x":"]}","\\u00e9":${big}},"":${big}}`;
  expect(pointersIn(json)).toEqual(["/a~1b/0", "/a~1b/3/1", "/~0/é", "/"]);
});

test("what is said of a number out of range differs", () => {
  const violations = new ViolationList();
  checkNumbers("[1e400,9007199254740993]", violations);
  expect(violations.list.map(({ detail }) => detail)).toEqual([
    "is a number beyond the range of a double",
    "is a number with more digits than a double holds; a text keeps them",
  ]);
});

test("any whole number is kept exactly if it is written again as itself", () => {
  const digits = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
  fc.assert(
    fc.property(digits, (number) => {
      expect(isKept(String(number))).toBe(writtenAs(Number(number)) === number);
    }),
  );
});

test("what is not kept is found beside any JSON, whose own numbers are kept", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(pointersIn(JSON.stringify(value))).toEqual([]);
      expect(pointersIn(JSON.stringify([value, { value }]).replace(/}]$/, ',"é":1e400}]'))).toEqual(["/1/é"]);
    }),
  );
});

test("a hostile text takes as long as any of its length", () => {
  const half = 200_000;
  const hostile = `1${"0".repeat(half)}1${"0".repeat(half)}1e-${2 * half - 20}`;
  expect(pointersIn(hostile)).toEqual([""]);
  expect(pointersIn(`"${"\\\\".repeat(half)}"`)).toEqual([]);
  expect(pointersIn(`${"[".repeat(half)}9007199254740993${"]".repeat(half)}`)).toHaveLength(1);
});

/** The whole number that `JSON.stringify` writes. */
function writtenAs(value: number): bigint {
  const [mantissa = "", exponent = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return BigInt(whole + fraction) * 10n ** BigInt(Number(exponent) - fraction.length);
}
