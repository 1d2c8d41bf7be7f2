import { expect, test } from "@jest/globals";
import { visibleText } from "../src/model/visible-text.ts";

test.each([
  ["C0, with line breaks", "a\u0000\u001b[31mb\r\nc\t", "a\\u0000\\u001b[31mb\\u000d\\u000ac\\u0009"],
  ["C1", "a\u007f\u009b31m", "a\\u007f\\u009b31m"],
  ["direction", "pump\u202egpj\u2066\u200f\u061c", "pump\\u202egpj\\u2066\\u200f\\u061c"],
  ["zero width", "pu\u200bm\u2060p\ufeff\u00ad\u3164", "pu\\u200bm\\u2060p\\ufeff\\u00ad\\u3164"],
  ["line separators", "a\u2028b\u2029", "a\\u2028b\\u2029"],
  ["tags, which are two units", "a\u{e0041}", "a\\udb40\\udc41"],
  ["a half of a pair", "a\ud83d", "a\\ud83d"],
])("characters of %s are escaped", (_, text, shown) => {
  expect(visibleText(text)).toBe(shown);
  expect(JSON.parse(`"${shown}"`)).toBe(text);
});

test("letters of all scripts, spaces and emoji stay", () => {
  for (const text of ["pump 1", "Zähler", "насос", "水泵", "مضخة", "🙂 e\u0301"])
    expect(visibleText(text)).toBe(text);
});
