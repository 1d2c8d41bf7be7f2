import { expect, test } from "@jest/globals";
import { Duration, durationBetween, lengthOf, Since, startOf } from "../src/model/duration.ts";

const accepts = (text: string) => Duration.safeParse(text).success;
const now = new Date("2026-03-01T00:00:00.000Z");

test.each(["PT24H", "P7D", "P1DT12H", "PT0.5S", "PT1H30M", "P2W", "P1M", "P1Y2M3DT4H5M6S"])(
  "%p is a duration",
  (text) => {
    expect(accepts(text)).toBe(true);
  },
);
test.each(["", "P", "PT", "24H", "P1", "P1M1Y", "P1D1W", "-PT1H", "P1DT", "PT1.5H", "pt1h"])(
  "%p is none",
  (text) => {
    expect(accepts(text)).toBe(false);
  },
);

test.each([
  ["PT24H", "2026-02-28T00:00:00.000Z"],
  ["P1D", "2026-02-28T00:00:00.000Z"],
  ["P1DT1H1M1.5S", "2026-02-27T22:58:58.500Z"],
  ["PT0S", "2026-03-01T00:00:00.000Z"],
  ["P2W", "2026-02-15T00:00:00.000Z"],
  ["P3M", "2025-12-01T00:00:00.000Z"],
  ["P1Y2M3DT4H", "2024-12-28T20:00:00.000Z"],
  ["P999999999999D", "1970-01-01T00:00:00.000Z"],
  ["P999999999999Y", "1970-01-01T00:00:00.000Z"],
  ["2026-01-01T00:00:00+01:00", "2025-12-31T23:00:00.000Z"],
])("since %s begins at %s", (since, start) => expect(startOf(since, now)).toBe(start));

test("what is no time and no duration is refused with what both are", () => {
  const { error } = Since.safeParse("yesterday");
  expect(error?.issues.map(({ message }) => message)).toEqual([expect.stringMatching(/RFC 3339.*ISO 8601/)]);
});

test("a month back from a day that the earlier month lacks begins at that month's last day", () => {
  expect(startOf("P1M", new Date("2026-03-31T12:00:00.000Z"))).toBe("2026-02-28T12:00:00.000Z");
  expect(startOf("P1Y", new Date("2024-02-29T12:00:00.000Z"))).toBe("2023-02-28T12:00:00.000Z");
});

test("a duration has a length, and is between two others or refused", () => {
  expect(lengthOf("P1DT1H", now)).toBe(25 * 3_600_000);
  const bounded = durationBetween("PT1S", "P90D");
  const fits = (text: string) => bounded.safeParse(text).success;
  expect(["PT1S", "P90D", "PT0.5S", "P91D", "1h"].map(fits)).toEqual([true, true, false, false, false]);
});
