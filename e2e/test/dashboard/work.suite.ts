import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { describe, expect, test } from "@jest/globals";
import type { Browser } from "playwright-core";
import { seriousViolations } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { visitDashboard } from "../../src/browser/visit.ts";
import { asMaster } from "../../src/tenant.ts";

/** Work for devices that are away. */
export function workForDevices(browser: () => Browser, shared: () => TestMesh): void {
  describe("work for a device that sleeps", () => {
    test("a call that waits is stored, listed, and cancelled", async () => {
      const mesh = shared();
      await asMaster(mesh).post("devices", { id: "sleeper", name: "Sleeper" });
      await using visit = await visitDashboard(browser(), mesh);
      const { page } = visit;
      await page.goto("/devices/sleeper/rpc");
      await visit.signIn(mesh.masterKey);
      await page.getByRole("combobox", { name: "Function" }).fill("Pump.Start");
      await page.getByLabel("If it does not listen").selectOption("it waits for an hour");
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.getByText("Pump.Start is stored").waitFor();
      await page.getByRole("button", { name: "Work", exact: true }).click();
      const work = page.getByRole("table", { name: "Work of the device, newest first" });
      await work.getByText("until the device listens").waitFor();
      // Another client's call arrives by the stream.
      await asMaster(mesh).post("devices/sleeper/rpc/Pump.Stop?wait=PT1H");
      await work.getByText("Pump.Stop").waitFor();
      expect(await seriousViolations(page)).toEqual([]);
      await work.getByRole("button", { name: "Cancel Pump.Start" }).click();
      await work.getByText("by request").waitFor();
      await eventually(async () => {
        const { json } = await asMaster(mesh).get("devices/sleeper/executions?state=cancelled");
        return json.length === 1;
      });
      expect(visit.pageErrors).toEqual(noPageErrors);
    });
  });
}
