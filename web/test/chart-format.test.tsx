import { describe, expect, jest, test } from "@jest/globals";
import { screen } from "@testing-library/react";
import { ChartControls } from "../src/features/data/chart-controls.tsx";
import { chartFormat } from "../src/features/data/chart-format.ts";
import {
  type ChartView,
  chartViewDefaults,
  chartViewIn,
  zoomValue,
} from "../src/features/data/chart-view.ts";
import { showPage } from "./show.tsx";

const at = Date.parse("2026-03-01T23:59:30.000Z");
const zoom = { from: at, to: at + 60_000 };

describe("the texts of a chart", () => {
  test("are those of the language, for numbers, the axis and a time in full", () => {
    const [german, english] = [chartFormat("UTC", "de-DE"), chartFormat("UTC", "en-US")];
    expect([german.number(1234.5), english.number(1234.5)]).toEqual(["1.234,5", "1,234.5"]);
    expect(german.time(at)).toBe("01.03.2026, 23:59:30");
    expect(english.time(at)).toMatch(/^Mar 1, 2026, 11:59:30\sPM$/);
    expect(german.axis([at], 3_600_000)).toEqual(["23:59\n1. März"]);
    expect(english.axis([at], 3_600_000)[0]).toMatch(/^11:59\sPM\nMar 1$/);
  });

  test("show a mean with one decimal more than what it is the mean of, at most six digits", () => {
    const { mean } = chartFormat("UTC", "en-US");
    expect(mean({ least: 6.1, most: 6.4, mean: 6.22333 })).toBe("6.22");
    expect(mean({ least: 1, most: 2, mean: 4 / 3 })).toBe("1.3");
    expect(mean({ least: 43.432, most: 43.471, mean: 43.45123456 })).toBe("43.4512");
    expect(mean({ least: 0.1 + 0.2, most: 0.4, mean: 1 / 3 })).toBe("0.33");
    expect(mean({ least: 1e-7, most: 3e-7, mean: 2.3456e-7 })).toBe("0.00000023");
    expect(mean({ least: 3.14285, most: 3.14285, mean: 3.14285 })).toBe("3.14285");
    expect(mean({ least: -1, most: 1, mean: 0.004 })).toBe("0.004");
  });

  test("number an axis with the decimals of its step", () => {
    const { numbers } = chartFormat("UTC", "de-DE");
    expect(numbers([3211.51, 3211.515, 3211.52], 0.005)).toEqual(["3.211,510", "3.211,515", "3.211,520"]);
    expect(numbers([209.94, 210], 0.02)).toEqual(["209,94", "210,00"]);
    expect(numbers([0, 2.5], 2.5)).toEqual(["0,0", "2,5"]);
    expect(numbers([0, 2_500], 2_500)).toEqual(["0", "2.500"]);
  });

  test("have seconds where the labels are closer, and the date at the first and at each new day", () => {
    const { axis } = chartFormat("UTC", "de-DE");
    expect(axis([at, at + 15_000, at + 30_000], 15_000)).toEqual([
      "23:59:30\n1. März",
      "23:59:45",
      "00:00:00\n2. März",
    ]);
    expect(axis([at + 250], 250)).toEqual(["23:59:30,250\n1. März"]);
    expect(axis([at, at + 86_400_000], 86_400_000)).toEqual(["1. März", "2. März"]);
    // As everywhere else on the page, with its narrow space.
    const hours = chartFormat("UTC", "en-US").axis([at - 14 * 3_600_000], 60_000);
    expect(hours.map((label) => label.replace(/\s/gu, " "))).toEqual(["9:59 AM Mar 1"]);
  });
});

describe("the view of charts in an address", () => {
  test("is found again as it was put there, and none where it is not valid", () => {
    expect(chartViewIn({ zoom: zoomValue(zoom), zone: "utc" })).toEqual({ zoom, zone: "UTC" });
    for (const text of ["", "x/y", "2026-03-01T00:00:00Z", zoomValue({ from: at, to: at })])
      expect(chartViewIn({ zoom: text, zone: "" })).toEqual({ zoom: null, zone: "local" });
  });

  test("is changed by controls that name the zone and end a zoom", async () => {
    const change = jest.fn((_changes: Partial<typeof chartViewDefaults>) => {});
    const controls = (view: ChartView) => <ChartControls view={view} onChange={change} />;
    await using page = await showPage(controls(chartViewIn(chartViewDefaults)), {});
    const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    // The switch alone says it of UTC.
    expect(screen.queryByText(zone) !== null).toBe(zone !== "UTC");
    expect(screen.queryByRole("button")).toBeNull();
    await page.user.click(screen.getByRole("switch", { name: "Times in UTC" }));
    expect(change).toHaveBeenCalledWith({ zone: "utc" });
    page.show(controls({ zoom, zone: "UTC" }));
    await page.user.click(await screen.findByRole("button", { name: "Reset the zoom" }));
    expect(change).toHaveBeenLastCalledWith({ zoom: "" });
  });
});
