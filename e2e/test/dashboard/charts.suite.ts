import { readFileSync } from "node:fs";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser } from "playwright-core";
import { seriousViolations } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** More records than a chart of an open range reads. */
const published = 5_400;

/** Numbers of more records than a chart reads. */
export function longCharts(browser: () => Browser, shared: () => TestMesh): void {
  describe("charts of long ranges", () => {
    let visit: Visit;
    beforeAll(async () => {
      visit = await visitDashboard(browser(), shared());
      await visit.page.goto("/");
      await visit.signIn(shared().masterKey);
    }, 120_000);
    afterAll(async () => {
      await visit?.[Symbol.asyncDispose]();
      await asMaster(shared()).delete("devices/tank");
    });

    test("show all numbers of a range, by spans of time", async () => {
      const mesh = shared();
      const { connect } = await enrolDevice(mesh, "tank");
      await using device = await connect();
      for (let from = 0; from < published; from += 100)
        await Promise.all(
          Array.from({ length: 100 }, (_, nth) =>
            device.publish("db/tank/level", { litres: (from + nth) % 10 }, 1),
          ),
        );
      // The first numbers are rolled up by the next sweep.
      await eventually(async () => (await asMaster(mesh).get("devices/tank/series")).json.length === 1, {
        withinMs: 90_000,
      });
      const { page } = visit;
      await visit.open("/data?view=chart&device=tank");
      await page.getByText("All records of the range").waitFor();
      const numbers = page.getByRole("table", { name: "Numbers of db/tank/level" });
      const cells = numbers.getByRole("row").last().getByRole("cell");
      expect((await cells.allTextContents()).slice(1)).toEqual(["0", "9", "4.5", "5,400"]);
      expect(visit.pageErrors).toEqual(noPageErrors);
    }, 180_000);

    test("show a value on the page of its device over up to two years", async () => {
      const { page } = visit;
      await visit.open("/devices/tank");
      const chart = page.getByRole("region", { name: "Litres", exact: true });
      await chart.getByText("2 y", { exact: true }).click();
      await chart.getByText("a point").waitFor();
      for (const figure of ["min 0", "mean 4.5", "max 9", "values 5,400"])
        await chart.locator("dl > div").filter({ hasText: figure }).waitFor();
      await chart.locator("canvas").waitFor();
      expect(new URL(page.url()).search).toBe("?range=2y");
      expect(visit.pageErrors).toEqual(noPageErrors);
    });

    test.each([
      ["en-US", 1280],
      ["en-US", 390],
      ["de-DE", 390],
    ])(
      "have no labels of time that overlap, in %s and %i px",
      async (locale, width) => {
        await using other = await visitDashboard(browser(), shared(), {
          locale,
          viewport: { width, height: 800 },
        });
        const { page } = other;
        await page.addInitScript(keepDrawnTexts);
        await page.goto("/");
        await other.signIn(shared().masterKey);
        const now = Date.now();
        for (const seconds of [1, 90, 20 * 60, 36 * 3_600, 9 * 86_400]) {
          const [from, to] = [now - seconds * 1_000, now].map((time) => new Date(time).toISOString());
          // Its numbers are of the last hour, and the axis is that of the zoom.
          await page.goto(`/devices/tank/data?range=7d&zoom=${from}/${to}`);
          const labels = await eventually(async () => {
            const drawn = await page.evaluate(drawnTexts);
            return drawn.length > 1 && drawn;
          });
          const lines = Map.groupBy(labels, ({ y }) => y);
          for (const line of lines.values()) {
            const ordered = line.toSorted((one, next) => one.x - next.x);
            const close = ordered.filter((label, at) => {
              const next = ordered[at + 1];
              return next !== undefined && label.x + label.width / 2 > next.x - next.width / 2;
            });
            expect({ seconds, close }).toEqual({ seconds, close: [] });
          }
        }
        expect(other.pageErrors).toEqual(noPageErrors);
      },
      180_000,
    );

    test("show several devices of a selection, a line each, and save what they draw", async () => {
      const mesh = shared();
      const ids = ["barrel-1", "barrel-2"];
      for (const [nth, id] of ids.entries()) {
        const { connect } = await enrolDevice(mesh, id);
        await using device = await connect();
        await device.publish(`db/${id}/level`, { litres: 7 + nth, full: false }, 1);
        await asMaster(mesh).post(`devices/${id}`, { shadow: { tags: { units: { litres: "l" } } } });
      }
      for (const id of ids)
        await eventually(async () => (await asMaster(mesh).get(`devices/${id}/series`)).json.length === 2, {
          withinMs: 90_000,
        });
      const { page } = visit;
      await visit.open("/devices?filter=barrel");
      for (const id of ids) await page.getByRole("checkbox", { name: `Select ${id}` }).check();
      await page
        .getByRole("region", { name: "Selected rows" })
        .getByRole("button", { name: "Chart" })
        .click();
      await page.getByRole("heading", { level: 1, name: "Chart of devices" }).waitFor();
      await page.getByLabel("Number", { exact: true }).selectOption("litres of level");
      await page.locator("canvas").waitFor();
      const rows = page.getByRole("table", { name: "Numbers of litres of level" }).getByRole("row");
      await rows.nth(2).waitFor();
      expect((await rows.allTextContents()).slice(1).sort()).toEqual([
        "barrel-17 l7 l7 l7 l1",
        "barrel-28 l8 l8 l8 l1",
      ]);
      expect(await seriousViolations(page)).toEqual([]);
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "CSV" }).click();
      const [names = "", ...lines] = readFileSync(await (await saved).path(), "utf8")
        .trim()
        .split("\r\n");
      expect(names.split(",").slice(1).sort()).toEqual(
        ids.flatMap((id) => [`${id} max`, `${id} mean`, `${id} min`]),
      );
      expect(lines.map((line) => line.slice(line.indexOf(","))).join()).toMatch(/,7,7,7/);
      await page.getByText("2 y", { exact: true }).click();
      await rows.nth(2).waitFor();
      expect(new URL(page.url()).searchParams.get("range")).toBe("P730D");
      expect(visit.pageErrors).toEqual(noPageErrors);
      for (const id of ids) await asMaster(mesh).delete(`devices/${id}`);
    }, 180_000);
  });
}

/** A text in the middle of its place on a canvas, as axes of time have them. */
interface DrawnText {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** In a page: keeps the centred texts that canvases show now. */
function keepDrawnTexts(): void {
  const texts: { drawn: DrawnText[] } = { drawn: [] };
  Object.assign(globalThis, { texts });
  const { prototype } = CanvasRenderingContext2D;
  const { fillText, clearRect } = prototype;
  prototype.clearRect = function (...at) {
    texts.drawn = [];
    clearRect.apply(this, at);
  };
  prototype.fillText = function (text, x, y, ...rest) {
    if (this.textAlign === "center") texts.drawn.push({ text, x, y, width: this.measureText(text).width });
    fillText.apply(this, [text, x, y, ...rest]);
  };
}

/** In a page: what {@link keepDrawnTexts} kept. */
function drawnTexts(): readonly DrawnText[] {
  return (globalThis as unknown as { readonly texts: { readonly drawn: readonly DrawnText[] } }).texts.drawn;
}
