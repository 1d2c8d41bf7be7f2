import { expect, test } from "@jest/globals";
import { chooseLocale } from "../src/components/locale.ts";
import { timeFieldFault, timeFieldText, timeInField } from "../src/components/time-field.tsx";

test.each([
  ["de-DE", "01.03.2026, 15:34:56", "1.3.26 15:34:56"],
  ["en-US", "03/01/2026, 03:34:56 PM", "3/1/26 3:34:56 pm"],
  ["sv-SE", "2026-03-01 15:34:56", "2026-03-01T15:34:56"],
])("times are written and read in the locale of the page, %s", (locale, text, typed) => {
  chooseLocale(locale);
  try {
    const time = new Date(2026, 2, 1, 15, 34, 56).toISOString();
    expect(timeFieldText(time).replaceAll("\u202f", " ")).toBe(text);
    for (const each of [text, typed, "2026-03-01 15:34:56"]) expect(timeInField(each)).toBe(time);
    expect(timeInField(text.slice(0, 10))).toBe(new Date(2026, 2, 1).toISOString());
    for (const wrong of ["yesterday", "31.31.2026", "2026-02-30", "2026-03-01 24:00", "1.2.3.4.5.6.7"])
      expect([wrong, timeInField(wrong)]).toEqual([wrong, null]);
    expect(timeFieldFault("yesterday")).toContain("2026");
    expect(timeFieldFault(" ")).toBeNull();
  } finally {
    chooseLocale("");
  }
});
