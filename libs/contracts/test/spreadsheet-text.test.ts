import { expect, test } from "@jest/globals";
import { withoutFormulas } from "../src/model/spreadsheet-text.ts";

test.each([
  ["=1+1", "'=1+1"],
  ["\uff0b1+1", "'\uff0b1+1"],
  ["a;-1+1", "a;'-1+1"],
  ["two\r\n@SUM(1)", "two\r\n'@SUM(1)"],
  // Where the tab or line break is dropped, the apostrophe is first.
  ["\t=1+1", "'\t'=1+1"],
  ["\r=1+1", "'\r'=1+1"],
  ["\n=1+1", "'\n'=1+1"],
  ["\t1", "'\t1"],
])("an apostrophe keeps a spreadsheet from running %j", (text, disarmed) => {
  expect(withoutFormulas(text)).toBe(disarmed);
});

test.each(["", "5-3", "-5", "+3.2", "-1e-3", "-1,5", "'=1", " =1", "1;-5;+3.2", "a;b\tc", "-5\n-6"])(
  "%j stays as it is",
  (text) => {
    expect(withoutFormulas(text)).toBe(text);
  },
);
