import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  asLines,
  countItems,
  leadingString,
  onlyMember,
  openEnvelope,
  outlineOf,
} from "../src/http/json-bytes.ts";

const json = fc.jsonValue({ maxDepth: 3 });
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8");
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));

describe("answers taken apart without parsing", () => {
  test("an envelope gives its string and the rest, whatever they hold", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), json, (etag, device) => {
        const opened = openEnvelope(bytes({ etag, device }), "etag", "device");
        expect(opened.first).toBe(JSON.parse(JSON.stringify(etag)));
        expect(text(opened.rest)).toBe(JSON.stringify(device));
        expect(leadingString(bytes({ etag, device }), "etag")).toBe(opened.first);
      }),
    );
  });

  test("an envelope in another order, or with blanks, is read all the same", () => {
    const opened = openEnvelope(Buffer.from('{ "device" : {"a":1}, "etag" : "7" }'), "etag", "device");
    expect([opened.first, text(opened.rest)]).toEqual(["7", '{"a":1}']);
    expect(text(onlyMember(Buffer.from(' {"x":1,"result":[2]} '), "result"))).toBe("[2]");
  });

  test("the only member comes bare", () => {
    fc.assert(
      fc.property(json, (result) => {
        expect(text(onlyMember(bytes({ result }), "result"))).toBe(JSON.stringify(result));
      }),
    );
  });

  test.each(["{}", "[]", "null", '"x"', "{", '{"etag":1,"device":{}}'])("%s is refused", (answer) => {
    expect(() => openEnvelope(Buffer.from(answer), "etag", "device")).toThrow();
  });
});

describe("items of a list", () => {
  test("are counted and put on lines as a parser would", () => {
    fc.assert(
      fc.property(fc.array(json), (values) => {
        const items = Buffer.from(values.map((value) => JSON.stringify(value)).join(","));
        expect(countItems(items)).toBe(values.length);
        const lines = text(asLines(items)).split("\n");
        expect(lines.pop()).toBe("");
        expect(lines).toEqual(values.map((value) => JSON.stringify(value)));
      }),
    );
  });

  test("with quotes and backslashes at the ends of strings are separated", () => {
    const values = ["\\", '\\"', '",', "\\\\", ',"', "]", { '"': "\\" }];
    const items = Buffer.from(values.map((value) => JSON.stringify(value)).join(","));
    expect(countItems(items)).toBe(values.length);
  });
});

describe("the outline of a body", () => {
  const depthOf = (value: unknown): number =>
    typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
  const membersOf = (value: unknown): number => {
    if (typeof value !== "object" || value === null) return 0;
    const below = Object.values(value).reduce<number>((sum, member) => sum + membersOf(member), 0);
    return below + (Array.isArray(value) ? 0 : Object.keys(value).length);
  };

  test("counts levels and members as a parser would, whatever texts hold", () => {
    const values = fc.jsonValue({
      maxDepth: 5,
      stringUnit: fc.constantFrom("a", '"', "\\", "{", "]", ":", "7", "é"),
    });
    fc.assert(
      fc.property(values, fc.constantFrom(undefined, 1), (value, space) => {
        const { depth, members } = outlineOf(Buffer.from(JSON.stringify(value, undefined, space)));
        expect([depth, members]).toEqual([depthOf(value), membersOf(value)]);
      }),
    );
  });
});
