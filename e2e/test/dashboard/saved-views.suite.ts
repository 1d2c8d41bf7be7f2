import type { TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { seriousViolations } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster } from "../../src/tenant.ts";

/** Lists of devices under names, in two browsers. The mesh has no saved view before and after. */
export function savedViews(browser: () => Browser, shared: () => TestMesh): void {
  describe("saved views of the dashboard", () => {
    let mesh: TestMesh;
    let ann: Visit;
    let bob: Visit;

    beforeAll(async () => {
      mesh = shared();
      await asMaster(mesh).post("devices", { id: "cellar", shadow: { tags: { labels: ["cellar"] } } });
      ann = await visitDashboard(browser(), mesh);
      bob = await visitDashboard(browser(), mesh);
      for (const { page, signIn } of [ann, bob]) {
        await page.goto("/");
        await signIn(mesh.masterKey);
      }
    });
    afterAll(async () => {
      for (const visit of [ann, bob]) await visit?.[Symbol.asyncDispose]();
      for (const { id } of (await asMaster(mesh).get("views")).json)
        await asMaster(mesh).delete(`views/${id}`);
      await asMaster(mesh).delete("devices/cellar");
    });

    const linksOf = (page: Page) => page.getByRole("list", { name: "Saved views" }).getByRole("link");
    const linkTo = (page: Page, name: string) =>
      linksOf(page).and(page.getByRole("link", { name, exact: true }));

    async function save({ page }: Visit, path: string, name: string): Promise<void> {
      await page.goto(path);
      await page.getByRole("button", { name: "Save view" }).click();
      const dialog = page.getByRole("dialog", { name: "Save view" });
      await dialog.getByLabel("Name").fill(name);
      await dialog.getByRole("button", { name: "Save", exact: true }).click();
      await dialog.waitFor({ state: "detached" });
    }

    /** The page is shown again, as after another tab. */
    async function comeBack({ page }: Visit): Promise<void> {
      await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange", { bubbles: true })));
    }

    test("a list is saved under a name and opened again from the navigation", async () => {
      const { page } = ann;
      await save(ann, "/devices?where=label%3Acellar&peek=cellar", "The cellar");
      await page.getByRole("button", { name: "View The cellar" }).waitFor();
      expect((await asMaster(mesh).get("views")).json).toEqual([
        { id: expect.any(String), name: "The cellar", query: "where=label%3Acellar" },
      ]);
      await ann.goTo("Home");
      await linkTo(page, "The cellar").click();
      await page.getByText("1 device", { exact: true }).waitFor();
      expect(new URL(page.url()).search).toBe("?where=label%3Acellar");
      expect(await linkTo(page, "The cellar").getAttribute("aria-current")).toBe("page");
    });

    test("two browsers that save at one time lose nothing, and each sees the other's", async () => {
      await Promise.all([save(ann, "/devices?filter=a", "By Ann"), save(bob, "/devices?filter=b", "By Bob")]);
      for (const visit of [ann, bob]) {
        await comeBack(visit);
        for (const name of ["By Ann", "By Bob", "The cellar"]) await linkTo(visit.page, name).waitFor();
        expect(await linksOf(visit.page).allTextContents()).toEqual(["By Ann", "By Bob", "The cellar"]);
      }
    });

    test("a view that one browser renames or deletes changes in the other", async () => {
      const { page } = ann;
      await linkTo(page, "By Ann").click();
      await page.getByRole("button", { name: "View By Ann" }).click();
      await page.getByRole("menuitem", { name: "Rename" }).click();
      const dialog = page.getByRole("dialog", { name: "Rename the view" });
      await dialog.getByLabel("Name").fill("By Bob");
      await dialog.getByRole("button", { name: "Rename" }).click();
      await dialog.getByText("Another saved view has that name.").waitFor();
      await dialog.getByLabel("Name").fill("Ann's");
      await dialog.getByRole("button", { name: "Rename" }).click();
      await page.getByRole("button", { name: "View Ann's" }).waitFor();
      await comeBack(bob);
      await linkTo(bob.page, "Ann's").waitFor();

      await page.getByRole("button", { name: "View Ann's" }).click();
      await page.getByRole("menuitem", { name: "Delete the view" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await linkTo(page, "Ann's").waitFor({ state: "detached" });
      await comeBack(bob);
      await linkTo(bob.page, "Ann's").waitFor({ state: "detached" });
    });

    test("have no serious violation of accessibility, in the light theme and in the dark one", async () => {
      const { page } = ann;
      await linkTo(page, "The cellar").click();
      await page.getByRole("button", { name: "View The cellar" }).waitFor();
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
        expect(await seriousViolations(page)).toEqual([]);
      }
    });

    test("are in the navigation of a phone, where no page scrolls sideways", async () => {
      await asMaster(mesh).post("views", { name: "W".repeat(60), query: "filter=cellar" });
      await using visit = await visitDashboard(browser(), mesh, {
        viewport: { width: 390, height: 844 },
        isMobile: true,
        hasTouch: true,
      });
      const { page } = visit;
      await page.goto("/devices");
      await visit.signIn(mesh.masterKey);
      await page.getByRole("button", { name: "Open the navigation" }).tap();
      await linkTo(page, "W".repeat(60)).tap();
      await page.getByRole("button", { name: `View ${"W".repeat(60)}` }).waitFor();
      await linksOf(page).first().waitFor({ state: "detached" });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width).toBeLessThanOrEqual(390);
      expect(visit.pageErrors).toEqual(noPageErrors);
    });

    test("met no violation of the page's policy, no error and no secret in a URL", () => {
      for (const { pageErrors } of [ann, bob]) expect(pageErrors).toEqual(noPageErrors);
    });
  });
}
