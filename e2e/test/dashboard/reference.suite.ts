import type { TestMesh } from "@devmesh/testkit/mesh";
import { afterEach, describe, expect, test } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { seriousViolations, violationsInBothThemes } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { drawn } from "../../src/browser/view-faults.ts";
import { transferredBytes, type Visit, visitDashboard } from "../../src/browser/visit.ts";

/** Routes of the page: the overview, the keys, and operations with and without a body. */
const places = [
  "",
  "auth",
  "post-/api/v2/devices/-id-",
  "get-/api/v2/data",
  "post-/api/v2/devices/-id-/rpc/-func-",
];

/** Most pixels of an opened operation, and bytes of the page with its fonts and the OpenAPI document. */
const maxHeight = 3_500;
const maxBytes = 700_000;

/** The API reference at `/docs`. */
export function reference(browser: () => Browser, shared: () => TestMesh): void {
  describe("the API reference", () => {
    const visits: Visit[] = [];
    afterEach(async () => {
      for (const visit of visits) await visit[Symbol.asyncDispose]();
    });

    async function visit(options: Parameters<typeof visitDashboard>[2] = {}): Promise<Visit> {
      const begun = await visitDashboard(browser(), shared(), options);
      visits.push(begun);
      return begun;
    }

    async function open(page: Page, place: string): Promise<void> {
      // A change of the fragment alone loads nothing.
      await page.goto("about:blank");
      await page.goto(`/docs${place === "" ? "" : `#?route=${place}`}`);
      await page.locator("openapi-explorer main").waitFor();
      await page.getByRole("heading").first().waitFor();
    }

    test("has no serious violation of accessibility, in the light theme and in the dark one, on a phone neither", async () => {
      const found: Record<string, string[]> = {};
      const { page } = await visit();
      for (const place of places) {
        await page.setViewportSize({ width: 1280, height: 800 });
        await open(page, place);
        const violations = await violationsInBothThemes(page);
        await page.setViewportSize({ width: 390, height: 844 });
        await drawn(page);
        violations.push(...(await seriousViolations(page)));
        if (violations.length > 0) found[place] = violations;
      }
      expect(found).toEqual({});
    }, 180_000);

    test("follows the theme that was chosen in the dashboard", async () => {
      const { page } = await visit({ colorScheme: "light" });
      await open(page, "");
      expect(await page.locator("html").getAttribute("data-mantine-color-scheme")).toBe("light");
      await page.evaluate(() => localStorage.setItem("mantine-color-scheme-value", "dark"));
      await open(page, "");
      expect(await page.locator("html").getAttribute("data-mantine-color-scheme")).toBe("dark");
    });

    test("shows the overview where the address names an operation that there is not", async () => {
      const { page } = await visit();
      await open(page, "get-/api/v2/nothing");
      await page.getByRole("heading", { name: "Quick start" }).waitFor();
      await page.evaluate(() => location.assign("#?route=get-/api/v2/nothing-either"));
      await page.waitForURL("**/docs#?route=overview");
    });

    test("shows of an operation one answer at a time, so that it stays short", async () => {
      const { page } = await visit();
      await open(page, "post-/api/v2/devices/-id-");
      expect(await page.locator("main").evaluate((main) => main.scrollHeight)).toBeLessThan(maxHeight);
      await page.getByText("The device as it is now.").waitFor();
      expect(await page.getByText("version_conflict").isVisible()).toBe(false);
      await page.getByRole("button", { name: "409", exact: true }).click();
      await page.getByText("version_conflict").first().waitFor();
      expect(await page.getByText("The device as it is now.").isVisible()).toBe(false);
    });

    test("sends a request with the key that was entered, and shows the answer", async () => {
      const { page } = await visit();
      await open(page, "");
      await page.getByRole("link", { name: "Authentication" }).click();
      await page.getByRole("textbox", { name: "api-token" }).fill(shared().masterKey);
      await page.getByRole("button", { name: "SET", exact: true }).click();
      const menu = page.getByRole("navigation", { name: "API Menu" });
      await menu.getByRole("link", { name: /^Devices/ }).press("Enter");
      await menu.getByRole("link", { name: "See where devices connect by MQTT" }).press("Enter");
      await page.getByRole("button", { name: "EXECUTE" }).click();
      await page.getByText("OK (200)").waitFor();
    });

    test("is served compressed, with all that it needs from its own origin", async () => {
      const { page } = await visit();
      const bytes = await transferredBytes(page);
      await open(page, "");
      await page.waitForLoadState("networkidle");
      expect(bytes()).toBeLessThan(maxBytes);
    });

    test("met no violation of its policy, no error, no request elsewhere and no secret in a URL", () => {
      for (const { pageErrors } of visits) expect(pageErrors).toEqual(noPageErrors);
    });
  });
}
