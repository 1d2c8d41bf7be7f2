import { lengthOf } from "@devmesh/contracts/model/duration";
import { describe, expect, test } from "@jest/globals";
import { edgesOf, isTimeZone, smallestEvery, usualEvery } from "../src/numbers/spans.ts";

const hour = 3_600_000;

function edges(from: string, until: string, every: string, tz = "UTC"): string[] {
  const found = edgesOf({ from: Date.parse(from), until: Date.parse(until), every, tz });
  return found.map((edge) => new Date(edge).toISOString());
}

describe("spans", () => {
  test("are rounded outwards to multiples of their length", () => {
    expect(edges("2026-01-31T10:07:00Z", "2026-01-31T10:21:00Z", "PT10M")).toEqual([
      "2026-01-31T10:00:00.000Z",
      "2026-01-31T10:10:00.000Z",
      "2026-01-31T10:20:00.000Z",
      "2026-01-31T10:30:00.000Z",
    ]);
    expect(edges("2026-01-31T10:00:00Z", "2026-01-31T10:10:00Z", "PT10M")).toHaveLength(2);
  });

  test("of days begin at midnight of their time zone, also where its clock changes", () => {
    expect(edges("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", "P1D", "Europe/Berlin")).toEqual([
      "2026-03-27T23:00:00.000Z",
      "2026-03-28T23:00:00.000Z",
      "2026-03-29T22:00:00.000Z",
      "2026-03-30T22:00:00.000Z",
    ]);
  });

  test("begin where the clock changes at midnight, and there is no such time", () => {
    expect(edges("2018-11-03T12:00:00Z", "2018-11-05T00:00:00Z", "P1D", "America/Sao_Paulo")).toEqual([
      "2018-11-03T03:00:00.000Z",
      "2018-11-04T03:00:00.000Z",
      "2018-11-05T02:00:00.000Z",
    ]);
  });

  test("of months and of several days belong to a calendar", () => {
    expect(edges("2025-12-24T00:00:00Z", "2026-02-02T00:00:00Z", "P1M")).toEqual([
      "2025-12-01T00:00:00.000Z",
      "2026-01-01T00:00:00.000Z",
      "2026-02-01T00:00:00.000Z",
      "2026-03-01T00:00:00.000Z",
    ]);
    const weeks = edges("2026-01-10T00:00:00Z", "2026-01-30T00:00:00Z", "P1W", "Asia/Kolkata").map(
      Date.parse,
    );
    expect(weeks.slice(1).map((edge, at) => (edge - (weeks[at] ?? 0)) / hour)).toEqual([168, 168, 168, 168]);
  });

  test.each([
    ["P1W", "UTC", ["2026-01-05T00:00:00.000Z", "2026-01-12T00:00:00.000Z", "2026-01-19T00:00:00.000Z"]],
    ["P7D", "UTC", ["2026-01-05T00:00:00.000Z", "2026-01-12T00:00:00.000Z", "2026-01-19T00:00:00.000Z"]],
    [
      "P1W",
      "Asia/Tokyo",
      ["2026-01-04T15:00:00.000Z", "2026-01-11T15:00:00.000Z", "2026-01-18T15:00:00.000Z"],
    ],
    ["P2W", "UTC", ["2026-01-05T00:00:00.000Z", "2026-01-19T00:00:00.000Z"]],
    ["P14D", "UTC", ["2026-01-05T00:00:00.000Z", "2026-01-19T00:00:00.000Z"]],
  ])("of %s in %s begin on a Monday", (every, tz, begins) => {
    expect(edges("2026-01-11T12:00:00Z", "2026-01-18T12:00:00Z", every, tz)).toEqual(begins);
  });

  test("of weeks begin on a Monday before 1970, too", () => {
    expect(edges("1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z", "P1W")).toEqual([
      "1969-12-29T00:00:00.000Z",
      "1970-01-05T00:00:00.000Z",
    ]);
  });

  test("have a usual length that gives so many points, and one that fits at least", () => {
    expect(usualEvery(24 * hour)).toBe("PT5M");
    expect(usualEvery(30 * 24 * hour)).toBe("PT2H");
    expect(smallestEvery(30 * 24 * hour)).toBe("PT30M");
    expect(lengthOf("P1W")).toBe(168 * hour);
  });

  test("know names of time zones", () => {
    expect([isTimeZone("Europe/Berlin"), isTimeZone("Mars/Olympus")]).toEqual([true, false]);
  });
});
