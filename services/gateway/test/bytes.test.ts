import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { leadingString, onlyMember, openEnvelope } from "../src/envelope.ts";
import { asLines, countItems } from "../src/json-items.ts";

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

  test("with quotes and backslashes at the ends of strings are told apart", () => {
    const values = ["\\", '\\"', '",', "\\\\", ',"', "]", { '"': "\\" }];
    const items = Buffer.from(values.map((value) => JSON.stringify(value)).join(","));
    expect(countItems(items)).toBe(values.length);
  });
});
