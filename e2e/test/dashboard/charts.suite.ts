import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser } from "playwright-core";
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
    }, 60_000);
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
  });
}
