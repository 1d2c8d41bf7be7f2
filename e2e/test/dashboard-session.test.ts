import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { noPageErrors } from "../src/browser/page-errors.ts";
import { type Visit, visitDashboard } from "../src/browser/visit.ts";
import { asMaster } from "../src/tenant.ts";

describeInBrowser("a session of the dashboard", (browser) => {
  let mesh: TestMesh;

  beforeAll(async () => {
    mesh = await startMesh();
    await asMaster(mesh).post("devices", { id: "lamp" });
  }, 180_000);
  afterAll(async () => await mesh?.stop(), 120_000);

  const staySwitch = (page: Page) => page.getByLabel("Stay signed in for 30 days");
  const signInField = (page: Page) => page.getByLabel("Master key");
  const devices = (page: Page) => page.getByRole("heading", { level: 1, name: "Devices" });
  const stored = (page: Page) =>
    page.evaluate(() => JSON.stringify([Object.entries(localStorage), document.cookie]));
  const signedIn = async (visit: Visit, stay = false) => {
    await visit.page.goto("/devices");
    if (stay) await staySwitch(visit.page).check();
    await visit.signIn(mesh.masterKey);
    await devices(visit.page).waitFor();
  };
  /** The keys that were made for browsers. */
  const lastingKeys = async (): Promise<{ key: string; expires_at: string }[]> =>
    (await asMaster(mesh).get("keys")).json.filter(({ name }: { name: string }) => name === "Stay signed in");

  test("is there in a new tab, and ends in all tabs by the sign-out in one", async () => {
    await using visit = await visitDashboard(browser(), mesh);
    const { page, context } = visit;
    await signedIn(visit);
    const [opened] = await Promise.all([
      context.waitForEvent("page"),
      page.getByRole("link", { name: "lamp", exact: true }).click({ modifiers: ["ControlOrMeta"] }),
    ]);
    await opened.getByRole("heading", { level: 1, name: "lamp" }).waitFor();
    expect(new URL(opened.url()).pathname).toBe("/devices/lamp");
    const typed = await context.newPage();
    await typed.goto("/keys");
    await typed.getByText("signed in", { exact: true }).waitFor();
    expect(await stored(typed)).not.toContain(mesh.masterKey);

    await typed.goto("/docs");
    await opened.getByRole("button", { name: "Sign out" }).click();
    for (const tab of [page, opened]) await signInField(tab).waitFor();
    await typed.goBack();
    for (const tab of [page, opened, typed]) {
      await signInField(tab).waitFor();
      expect(await tab.evaluate(() => sessionStorage.length)).toBe(0);
      await tab.reload();
      await signInField(tab).waitFor();
    }
    await visit.signIn(mesh.masterKey);
    await devices(page).waitFor();
    await opened.getByRole("heading", { level: 1, name: "lamp" }).waitFor();
    expect(visit.pageErrors).toEqual(noPageErrors);
  });

  test("is unknown to other browsers, and over when the last tab is closed", async () => {
    await using visit = await visitDashboard(browser(), mesh);
    await signedIn(visit);
    await using other = await visitDashboard(browser(), mesh);
    await other.page.goto("/");
    await signInField(other.page).waitFor();
    await visit.page.close();
    const next = await visit.context.newPage();
    await next.goto("/");
    await signInField(next).waitFor();
  });

  test("outlasts the browser with a key of its own, which the sign-out deletes", async () => {
    await using visit = await visitDashboard(browser(), mesh);
    await signedIn(visit, true);
    const [made] = await lastingKeys();
    const days = (Date.parse(made?.expires_at ?? "") - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(29.9);
    expect(days).toBeLessThan(30.1);
    expect(await stored(visit.page)).toContain(made?.key);
    expect(await stored(visit.page)).not.toContain(mesh.masterKey);

    await using later = await visitDashboard(browser(), mesh, {
      storageState: await visit.context.storageState(),
    });
    await later.page.goto("/devices");
    await devices(later.page).waitFor();
    await later.page.getByRole("button", { name: "Sign out" }).click();
    await signInField(later.page).waitFor();
    await eventually(async () => (await lastingKeys()).length === 0);
    expect(await stored(later.page)).not.toContain(made?.key);
    // The first browser has the same key, which is no longer accepted.
    await visit.page.getByText("The key is no longer accepted").waitFor();
    expect(await stored(visit.page)).not.toContain(made?.key);
  });
});
