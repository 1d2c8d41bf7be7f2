import { describe, expect, test } from "@jest/globals";
import { Timestamp, TimestampInput } from "../src/model/time.ts";

describe("a time that a caller writes", () => {
  test.each([
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"],
    ["2026-01-31t12:00:00.123456z", "2026-01-31T12:00:00.123Z"],
    ["2026-01-31T12:00:00+05:30", "2026-01-31T06:30:00.000Z"],
    ["2028-02-29T23:59:59-00:30", "2028-03-01T00:29:59.000Z"],
  ])("is put into canonical form: %s", (written, canonical) => {
    expect(TimestampInput.parse(written)).toBe(canonical);
    expect(Timestamp.safeParse(canonical).success).toBe(true);
  });

  test.each([
    "2027-02-29T00:00:00Z",
    "2027-02-30T00:00:00Z",
    "2027-04-31T00:00:00Z",
    "2027-13-01T00:00:00Z",
    "2027-01-01T24:00:00Z",
    "2027-01-01T00:60:00Z",
    "2027-01-01T00:00:00+24:00",
    "2027-01-01T00:00:00",
    "2027-01-01",
    "9999-12-31T23:59:59-01:00",
    "0000-01-01T00:00:00+01:00",
    "1767225600",
    "",
  ])("is refused where there is no such time: %s", (written) => {
    expect(TimestampInput.safeParse(written).success).toBe(false);
  });
});
