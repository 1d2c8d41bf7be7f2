import { secretsInText } from "@devmesh/contracts/model/api-key";
import type { Session } from "@devmesh/contracts/model/session";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { seriousViolations } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { signOutOf, type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster } from "../../src/tenant.ts";

/** Sessions in several tabs. The mesh has no other key before, and none after. */
export function session(browser: () => Browser, shared: () => TestMesh): void {
  describe("a session of the dashboard", () => {
    let mesh: TestMesh;

    beforeAll(async () => {
      mesh = shared();
      await asMaster(mesh).post("devices", { id: "lamp" });
    }, 180_000);

    const staySwitch = (page: Page) => page.getByLabel("Stay signed in for 30 days");
    const signInField = (page: Page) => page.getByLabel("Master key");
    const devices = (page: Page) => page.getByRole("heading", { level: 1, name: "Devices" });
    const stored = (page: Page) =>
      page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
    const signedIn = async (visit: Visit, stay = false) => {
      await visit.page.goto("/devices");
      if (stay) await staySwitch(visit.page).check();
      await visit.signIn(mesh.masterKey);
      await devices(visit.page).waitFor();
    };
    const sessions = async (): Promise<Session[]> => (await asMaster(mesh).get("sessions")).json;
    const noSession = () => eventually(async () => (await sessions()).length === 0);
    const signOut = async (visit: Visit) => {
      await visit.signOut();
      await signInField(visit.page).waitFor();
    };

    const endSessions = async () => {
      for (const { id } of await sessions()) await asMaster(mesh).delete(`sessions/${id}`);
    };
    beforeEach(endSessions);
    afterAll(async () => {
      await endSessions();
      await asMaster(mesh).delete("devices/lamp");
      const { json: keys } = await asMaster(mesh).get("keys");
      for (const { id, key } of keys) if (key !== mesh.masterKey) await asMaster(mesh).delete(`keys/${id}`);
    });

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
      await signOutOf(opened);
      for (const tab of [page, opened]) await signInField(tab).waitFor();
      await typed.goto("/keys");
      for (const tab of [page, opened, typed]) {
        await signInField(tab).waitFor();
        expect(await tab.evaluate(() => sessionStorage.length)).toBe(0);
        await tab.reload();
        await signInField(tab).waitFor();
      }
      await noSession();
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

    test("outlasts the browser for 30 days, and is ended by the sign-out in all its tabs", async () => {
      await using visit = await visitDashboard(browser(), mesh);
      await signedIn(visit, true);
      const [begun] = await sessions();
      const days = (Date.parse(begun?.expires_at ?? "") - Date.now()) / 86_400_000;
      expect(days).toBeGreaterThan(29.9);
      expect(days).toBeLessThan(30.1);
      expect((await asMaster(mesh).get("keys")).json).toHaveLength(1);
      expect(await stored(visit.page)).toMatch(/sk_[0-9A-Za-z]{32}/);
      expect(await stored(visit.page)).not.toMatch(/mk_/);

      await using later = await visitDashboard(browser(), mesh, {
        storageState: await visit.context.storageState(),
      });
      await later.page.goto("/devices");
      await devices(later.page).waitFor();
      await signOut(later);
      await noSession();
      expect(await stored(later.page)).not.toMatch(secretsInText);
      // The first browser has the same session, which is no longer accepted.
      await visit.page.getByText("The session was ended").waitFor();
      expect(await stored(visit.page)).not.toMatch(secretsInText);
    });

    test("is ended at the next start where the sign-out did not reach the server, and both are said", async () => {
      await using visit = await visitDashboard(browser(), mesh);
      const { page, context } = visit;
      await signedIn(visit, true);
      // A page that is open for a while has loaded its menu.
      await page.getByRole("button", { name: /: menu$/ }).click();
      const item = page.getByRole("menuitem", { name: "Sign out" });
      await item.waitFor();
      await context.setOffline(true);
      await item.click();
      await page.getByText("the session is still valid there").waitFor();
      expect(await sessions()).toHaveLength(1);
      await context.setOffline(false);
      await page.reload();
      await page.getByText("It has now, and its session has ended.").waitFor();
      expect(await sessions()).toEqual([]);
      expect(await stored(page)).not.toMatch(secretsInText);
      await page.reload();
      await signInField(page).waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
    });

    test("asks for a master key when a secret is wanted, and keeps it in memory", async () => {
      await using visit = await visitDashboard(browser(), mesh);
      const { page } = visit;
      const prompt = page.getByRole("dialog", { name: "Enter a master key" });
      const button = (name: string) => page.getByRole("button", { name, exact: true });
      await signedIn(visit);
      await page.goto("/keys");
      await page.getByText("hidden", { exact: true }).waitFor();
      await button("Show the keys").click();
      expect(await seriousViolations(page)).toEqual([]);
      const [session] = /sk_[0-9A-Za-z]{32}/.exec(await stored(page)) ?? [""];
      await prompt.getByLabel("Master key").fill(session);
      await page.keyboard.press("Enter");
      await prompt.getByText("This is the key of a session").waitFor();
      await button("Cancel").click();
      await page.getByRole("alert").filter({ hasText: "this needs a master key" }).waitFor();

      // A form below it stays when Escape closes it, and is sent with the key.
      await button("Create key").click();
      await page.getByLabel("Name").fill("Night shift");
      await button("Create").click();
      await prompt.getByLabel("Master key").press("Escape");
      await prompt.waitFor({ state: "detached" });
      expect(await page.getByLabel("Name").inputValue()).toBe("Night shift");
      await button("Create").click();
      await visit.enterMasterKey(mesh.masterKey);
      const made = await page.getByRole("region", { name: "Night shift" }).textContent();
      await button("Done").click();
      await button("Show the keys").click();
      await button("Show the key Night shift").click();
      await page.getByText(made ?? "", { exact: true }).waitFor();
      expect(await stored(page)).not.toMatch(/mk_/);

      await page.goto("/devices/lamp/credentials");
      await button("Show the credentials").click();
      await visit.enterMasterKey(mesh.masterKey);
      await button("Show the token").waitFor();
      expect(visit.pageErrors).toEqual(noPageErrors);
    });

    test("is listed apart from keys, and can be ended there", async () => {
      await using visit = await visitDashboard(browser(), mesh);
      await signedIn(visit);
      await using other = await visitDashboard(browser(), mesh, { userAgent: "Firefox/140 (Windows)" });
      await signedIn(other);
      await visit.goTo("Keys");
      const { page } = visit;
      const listed = page.getByRole("table", { name: "Sessions" }).getByRole("row");
      await listed.filter({ hasText: "Chrome on Linux this browser" }).waitFor();
      await page.getByRole("button", { name: "End the session Firefox on Windows" }).click();
      const question = page.getByRole("dialog", { name: "End the session Firefox on Windows?" });
      await question.waitFor();
      expect(await seriousViolations(page)).toEqual([]);
      await question.getByRole("button", { name: "End", exact: true }).click();
      await other.page.getByText("The session was ended").waitFor();
      await listed.filter({ hasText: "Firefox on Windows" }).waitFor({ state: "detached" });
    });
  });
}
