import { expect, test } from "@jest/globals";
import { bytesText, countText, durationText, rateText } from "../src/components/number-text.ts";

test.each([
  [0, "0"],
  [0.01, "<0.1"],
  [0.4, "0.4"],
  [12.34, "12.3"],
  [1_234.5, "1,235"],
])("a rate of %d a second reads %s", (rate, text) => {
  expect(rateText(rate)).toBe(text);
});

test.each([
  [0, "0 ms"],
  [0.001, "<0.01 ms"],
  [0.123, "0.12 ms"],
  [12.34, "12.3 ms"],
  [1_234, "1,234 ms"],
  [12_340, "12.3 s"],
])("a duration of %d ms reads %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test("a count is grouped by thousands", () => {
  expect(countText(1_234_567)).toBe("1,234,567");
});

test.each([
  [0, "0 bytes"],
  [999, "999 bytes"],
  [1_234, "1.2 KB"],
  [123_456_789, "123 MB"],
  [5e15, "5,000 TB"],
])("a size of %d bytes reads %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});
