import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  ConditionInput,
  maxConditionLength,
  parseConditionText,
  printConditionText,
} from "../src/model/condition-text.ts";
import { DeviceCondition } from "../src/model/device-condition.ts";
import { problemWords } from "../src/model/diagnostics.ts";

const conditionOf = (text: string) => {
  const parsed = parseConditionText(text);
  if ("error" in parsed) throw new Error(parsed.error.detail);
  return parsed.condition;
};
const errorOf = (text: string) => {
  const parsed = parseConditionText(text);
  if ("condition" in parsed) throw new Error(`${text} is a condition`);
  return parsed.error;
};

test("no term is the condition that each device meets", () => {
  expect(conditionOf("")).toEqual({});
  expect(conditionOf(" \t ")).toEqual({});
  expect(printConditionText({})).toBe("");
});

test.each<[text: string, condition: DeviceCondition]>([
  ["pump", { text: { all: ["pump"] } }],
  ['"Boiler pump" -old', { text: { all: ["Boiler pump"], none: ["old"] } }],
  ['"label:x"', { text: { all: ["label:x"] } }],
  ["label:site-1 label:a:b", { labels: { all: ["site-1", "a:b"] } }],
  ['-label:"two words"', { labels: { none: ["two words"] } }],
  ["version:2.0.1 version:none", { version: { in: ["2.0.1", null] } }],
  ['-version:"none"', { version: { not_in: ["none"] } }],
  ["online:true", { online: true }],
  ["-online:true", { online: false }],
  ["silent:24h", { silent_for: "PT24H" }],
  ["silent:1w2d", { silent_for: "P1W2D" }],
  ["silent:1d12h30m", { silent_for: "P1DT12H30M" }],
  ["silent:P1M", { silent_for: "P1M" }],
  ["-silent:7d", { seen_within: "P7D" }],
  ["problem:any -problem:wrong_password", { problem: { in: ["any"], not_in: ["wrong_password"] } }],
  ["desired/app/mode:eco", { shadow: [{ pointer: "/state/desired/app/mode", is: "eco" }] }],
  ["-reported/on:true", { shadow: [{ pointer: "/state/reported/on", is_not: true }] }],
  ['reported/on:"true"', { shadow: [{ pointer: "/state/reported/on", is: "true" }] }],
  ["reported/t:-1.5e3", { shadow: [{ pointer: "/state/reported/t", is: -1500 }] }],
  ["reported/t:01", { shadow: [{ pointer: "/state/reported/t", is: "01" }] }],
  ["reported/t:1e999", { shadow: [{ pointer: "/state/reported/t", is: "1e999" }] }],
  ["-delta:null", { shadow: [{ pointer: "/state/delta", is_not: null }] }],
  ["tags/owner:null", { shadow: [{ pointer: "/tags/owner", is: null }] }],
  ["/state/reported/a:1", { shadow: [{ pointer: "/state/reported/a", is: 1 }] }],
  ['"reported/a b:c":"d \\"e\\" \\\\"', { shadow: [{ pointer: "/state/reported/a b:c", is: 'd "e" \\' }] }],
])("%s is understood, and printed so that it is again", (text, condition) => {
  expect(conditionOf(text)).toEqual(condition);
  expect(conditionOf(printConditionText(condition))).toEqual(condition);
});

test("a text is printed so that it is none that begins like JSON", () => {
  expect(printConditionText({ text: { all: ["{b"] }, labels: { all: ["a"] } })).toBe('"{b" label:a');
});

describe("errors name the place and what is allowed there", () => {
  test.each([
    ["label:", 6, 0, "value"],
    ["a  labl:x", 3, 4, "no field"],
    ["silent:24", 7, 2, "duration"],
    ["online:yes", 7, 3, "true or false"],
    ["problem:wrong_pasword", 8, 13, "diagnostics"],
    ["online:true online:false", 19, 5, "once"],
    ['label:"a', 8, 0, "closing quote"],
    ['label:a"b', 7, 1, "quote must begin"],
    ['"a"b', 3, 1, "blank"],
    ["x -", 3, 0, "a word"],
    [":x", 0, 0, "no field"],
    ["/name:x", 0, 5, "must begin with /state/desired"],
    ["reported/~2:x", 0, 11, "JSON pointer"],
  ])("%s", (text, at, length, words) => {
    expect(errorOf(text)).toMatchObject({ at, length, detail: expect.stringContaining(words) });
  });

  test("as lists for suggestions", () => {
    expect(errorOf("online:").allowed).toEqual(["true", "false"]);
    expect(errorOf("problem:x").allowed).toContain("wrong_password");
    expect(errorOf("nosuch:x").allowed).toEqual(expect.arrayContaining(["label", "reported/"]));
  });

  test("a term beyond the bound of its list", () => {
    const text = Array.from({ length: 60 }, (_, nth) => `label:${nth}`).join(" ");
    expect(errorOf(text).at).toBe(text.indexOf("label:50") + 6);
  });

  test("a text that is too long", () => {
    expect(errorOf("x".repeat(maxConditionLength + 5))).toMatchObject({ at: maxConditionLength, length: 5 });
  });
});

test("a number that no double holds is a text, as the shadow has it", () => {
  const asked = (text: string) => ConditionInput.parse(`reported/iccid:${text}`).shadow?.[0]?.is;
  expect(asked("89490200001234567891")).toBe("89490200001234567891");
  expect(asked("1e400")).toBe("1e400");
  expect(asked("9007199254740992")).toBe(9007199254740992);
});

describe("a request takes text or JSON", () => {
  const issuesOf = (text: string) =>
    ConditionInput.safeParse(text).error?.issues.map(({ path, message }) => [path.join("/"), message]);

  test("of which each is the condition", () => {
    const condition = { labels: { all: ["a"] }, online: true };
    expect(ConditionInput.parse(JSON.stringify(condition))).toEqual(condition);
    expect(ConditionInput.parse("label:a online:true")).toEqual(condition);
    expect(ConditionInput.parse("{}")).toEqual({});
  });

  test("and errors point into it", () => {
    expect(issuesOf("labl:a")).toEqual([["", expect.stringMatching(/^at character 1: .*allowed: label, /)]]);
    expect(issuesOf('{"labels":{"all":[1]}}')).toEqual([["labels/all/0", expect.any(String)]]);
    expect(issuesOf('{"labels"')).toEqual([["", "is not JSON"]]);
    expect(issuesOf('{"shadow":[{"pointer":"/tags/a"}]}')).toEqual([
      ["shadow/0", "must have either `is` or `is_not`"],
    ]);
    expect(issuesOf('{"labels":{"any":[]}}')).toEqual([["labels/any", "is not known here"]]);
    expect(issuesOf(`{"labels":{"all":["${"x".repeat(maxConditionLength)}"]}}`)).toEqual([
      ["", `must have at most ${maxConditionLength} characters`],
    ]);
    expect(issuesOf('{"online":true,"labels":{"all":[]},"online":false}')).toEqual([
      ["online", "must be given once"],
    ]);
    expect(issuesOf('{"labels":{"all":["a"],"\\u0061ll":["b"]}}')).toEqual([
      ["labels/all", "must be given once"],
    ]);
    expect(issuesOf('{"shadow":[{"pointer":"/tags/a","is":9007199254740993}]}')).toEqual([
      ["shadow/0/is", expect.stringContaining("a text keeps them")],
    ]);
    expect(issuesOf('{"version":{"in":[]}}')).toEqual([["version/in", expect.any(String)]]);
  });
});

const list = <T>(item: fc.Arbitrary<T>) => fc.array(item, { minLength: 1, maxLength: 4 });
const someOf = <T extends Record<string, fc.Arbitrary<unknown>>>(members: T) =>
  fc.record(members, { requiredKeys: [] }).filter((record) => Object.keys(record).length > 0);
const wild = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12, unit: "binary" }),
  fc.constantFrom("none", "true", "-1e3", "null", "-a", "a:b", '"', "\\", " ", "label:x", "\u00a0", "PT1H"),
);
const member = fc.string({ maxLength: 5, unit: "binary" });
const pointer = fc
  .tuple(fc.constantFrom("/state/desired", "/state/reported", "/state/delta", "/tags"), fc.array(member))
  .map(([section, members]) =>
    [section, ...members.map((name) => name.replaceAll("~", "~0").replaceAll("/", "~1"))].join("/"),
  );
const value = fc.oneof(
  wild,
  fc.constant(""),
  fc.boolean(),
  fc.constant(null),
  // JSON has no -0.
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
);
const problem = fc.constantFrom("any" as const, ...problemWords);
const version = fc.option(wild);
const duration = fc.oneof(
  fc.constantFrom("P1Y", "PT0.5S", "P1M", "PT0S", "P2W"),
  fc.nat().map((hours) => `PT${hours}H`),
  fc.tuple(fc.nat(), fc.nat()).map(([days, minutes]) => `P${days}DT${minutes}M`),
);
const condition = fc.record(
  {
    text: someOf({ all: list(wild), none: list(wild) }),
    labels: someOf({ all: list(wild), none: list(wild) }),
    version: someOf({ in: list(version), not_in: list(version) }),
    online: fc.boolean(),
    silent_for: duration,
    seen_within: duration,
    problem: someOf({ in: list(problem), not_in: list(problem) }),
    shadow: list(fc.oneof(fc.record({ pointer, is: value }), fc.record({ pointer, is_not: value }))),
  },
  { requiredKeys: [] },
);

test("each condition, printed and parsed, is the one it was", () => {
  fc.assert(
    fc.property(condition, (given) => {
      const checked = DeviceCondition.parse(given);
      const text = printConditionText(checked);
      expect(conditionOf(text)).toEqual(checked);
      expect(printConditionText(conditionOf(text))).toBe(text);
    }),
    { numRuns: 300 },
  );
});

test("each text is a condition that the schema takes, or has an error within the text", () => {
  const piece = fc.oneof(
    fc.constantFrom(":", '"', "-", " ", "\\", "/", "~", "label", "silent", "reported/a", "problem", "any"),
    fc.string({ maxLength: 6, unit: "binary" }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join("");
      const parsed = parseConditionText(text);
      if ("condition" in parsed) {
        expect(DeviceCondition.parse(parsed.condition)).toEqual(parsed.condition);
        expect(conditionOf(printConditionText(parsed.condition))).toEqual(parsed.condition);
      } else {
        const { at, length } = parsed.error;
        expect(at).toBeGreaterThanOrEqual(0);
        expect(at + length).toBeLessThanOrEqual(text.length);
      }
    }),
    { numRuns: 1_000 },
  );
});
