import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { seriousViolations } from "../src/browser/accessibility.ts";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { photograph, picturesAreAskedFor } from "../src/browser/photograph.ts";
import { type Visit, visitDashboard } from "../src/browser/visit.ts";
import { type SmallFleet, startSmallFleet } from "../src/small-fleet.ts";
import { asMaster } from "../src/tenant.ts";

const phone = { width: 390, height: 844 };

/** Every tab, in the order of the navigation, and every section of a device, each by its path. */
const tabs = ["/devices", "/data", "/keys", "/customers", "/mesh", "/reference"];
const sections = ["", "/shadow", "/rpc", "/data", "/log", "/access", "/credentials"].map(
  (path) => `/devices/roof-east${path}`,
);
const views = [...tabs, ...sections, "/devices/cistern-pump/shadow", "/no/such/view"];

describeInBrowser("the views of the dashboard", (browser) => {
  let mesh: TestMesh;
  let fleet: SmallFleet;
  const visits: Visit[] = [];

  beforeAll(async () => {
    mesh = await startMesh();
    fleet = await startSmallFleet(mesh);
    for (let nth = 0; nth < 120; nth += 1) {
      const celsius = Number((19 + 3 * Math.sin(nth / 12) + Math.sin(nth / 2) / 5).toFixed(2));
      fleet.publish("roof-east", "climate", { celsius, percent: Math.round(55 - 4 * Math.sin(nth / 15)) });
      // A chart of some seconds is one to look at.
      if (picturesAreAskedFor) await sleep(150);
    }
    await eventually(
      async () => (await asMaster(mesh).get("data?filter=climate&limit=200")).json.length === 120,
    );
  }, 180_000);
  afterAll(async () => {
    for (const visit of visits) await visit[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
    await mesh?.stop();
  }, 120_000);

  async function signedIn(options: Parameters<typeof visitDashboard>[2] = {}): Promise<Visit> {
    const visit = await visitDashboard(browser(), mesh, options);
    visits.push(visit);
    await visit.page.goto("/");
    await visit.signIn(mesh.masterKey);
    return visit;
  }

  /** Opens a view and waits until all that it reads is there. */
  async function show({ page, open }: Visit, path: string): Promise<void> {
    await open(path);
    await page.getByText("Loading", { exact: true }).first().waitFor({ state: "detached" });
  }

  /** What is wrong with each view, by its path; views without fault are left out. */
  async function faultsOf(visit: Visit, find: (page: Page) => Promise<string[]>) {
    const found: Record<string, string[]> = {};
    for (const path of views) {
      await show(visit, path);
      const faults = await find(visit.page);
      if (faults.length > 0) found[path] = faults;
    }
    return found;
  }

  test("are those that the navigation and the page of a device lead to", async () => {
    const visit = await signedIn();
    const hrefsOf = async (name: string) =>
      await visit.page
        .getByRole("navigation", { name })
        .getByRole("link")
        .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    expect(await hrefsOf("Views")).toEqual(tabs);
    await show(visit, "/devices/roof-east");
    expect(await hrefsOf("Sections of the device")).toEqual(sections);
  });

  test("are searched by what finds a button without a name and a text that is hard to read", async () => {
    await using context = await browser().newContext();
    const page = await context.newPage();
    await page.setContent(
      '<html lang="en"><title>x</title><main><h1>x</h1><button></button><p style="color: #bbb">pale</p></main></html>',
    );
    const rules = (await seriousViolations(page)).map((violation) => violation.split(" ", 1)[0]);
    expect(rules).toEqual(["button-name", "color-contrast"]);
  });

  for (const colorScheme of ["light", "dark"] as const) {
    test(`have no serious violation of accessibility in the ${colorScheme} theme`, async () => {
      const visit = await visitDashboard(browser(), mesh, { colorScheme });
      visits.push(visit);
      await visit.page.goto("/");
      await visit.page.getByLabel("Master key").waitFor();
      expect(await seriousViolations(visit.page)).toEqual([]);
      await visit.signIn(mesh.masterKey);
      expect(await visit.page.locator("html").getAttribute("data-mantine-color-scheme")).toBe(colorScheme);
      expect(await faultsOf(visit, seriousViolations)).toEqual({});
    }, 120_000);
  }

  test("fit on a phone, where no page scrolls sideways", async () => {
    const visit = await signedIn({ viewport: phone, isMobile: true, hasTouch: true });
    const overhang = (page: Page) =>
      page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        return scrollWidth > clientWidth ? [`${scrollWidth} px wide`] : [];
      });
    expect(await faultsOf(visit, overhang)).toEqual({});
    await visit.page.getByRole("button", { name: "Open the navigation" }).tap();
    await visit.goTo("Devices");
    expect(await overhang(visit.page)).toEqual([]);
  }, 90_000);

  if (picturesAreAskedFor) {
    test("are pictured for the documentation", async () => {
      const visit = await signedIn();
      const { page } = visit;
      await show(visit, "/devices");
      await photograph(page, "devices");
      await page.getByRole("button", { name: "Use the dark theme" }).click();
      await photograph(page, "devices-dark");
      await page.getByRole("button", { name: "Use the light theme" }).click();
      await page.getByRole("button", { name: "Add device" }).click();
      await page.getByRole("dialog").getByLabel("ID").fill("attic-fan");
      await page.getByRole("dialog").getByLabel("Name").fill("Fan, attic");
      await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
      await page.getByText("attic-fan is created").waitFor();
      await photograph(page, "device-creation");
      await page.keyboard.press("Escape");

      await show(visit, "/devices/roof-east");
      await photograph(page, "device");
      await show(visit, "/devices/cistern-pump/shadow");
      await photograph(page, "device-shadow");
      await show(visit, "/devices/cellar-pump/rpc");
      for (const [func, params] of [
        ["Sys.GetInfo", ""],
        ["Pump.Start", '{"seconds": 30}'],
      ] as const) {
        await page.getByRole("combobox", { name: "Function" }).fill(func);
        await page.getByLabel("Parameters").fill(params);
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "Call", exact: true }).click();
        await page.getByRole("region", { name: `Answer of ${func}` }).waitFor();
      }
      await photograph(page, "device-rpc");
      await show(visit, "/devices/roof-east/data");
      await page.locator("canvas").first().waitFor();
      await photograph(page, "device-data");

      await show(visit, "/data?filter=celsius");
      await photograph(page, "data");
      for (const tab of ["keys", "customers", "mesh", "reference"]) {
        await show(visit, `/${tab}`);
        await photograph(page, tab);
      }
      const pocket = await signedIn({
        viewport: phone,
        isMobile: true,
        hasTouch: true,
        deviceScaleFactor: 2,
      });
      await show(pocket, "/devices/roof-east/data");
      await pocket.page.locator("canvas").first().waitFor();
      await photograph(pocket.page, "device-data-phone");
    }, 120_000);
  }
});
