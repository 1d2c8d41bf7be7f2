import { type SimulatedDevice, startSimulatedDevice } from "@devmesh/simulator/simulated-device";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { startTcpProxy, type TcpProxy } from "@devmesh/testkit/tcp-proxy";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster } from "../../src/tenant.ts";
import { testsInOrder } from "../../src/tests-in-order.ts";

/** The server goes away and comes back. */
export function outage(browser: () => Browser, shared: () => TestMesh): void {
  describe("the dashboard while its server is away", () => {
    const test = testsInOrder(() => visit.describe());
    let mesh: TestMesh;
    let proxy: TcpProxy;
    let visit: Visit;
    let page: Page;
    let device: SimulatedDevice | undefined;

    beforeAll(async () => {
      mesh = shared();
      proxy = await startTcpProxy(mesh.ports.http);
      const { json } = await asMaster(mesh).post("devices", { id: "lantern" });
      device = await startSimulatedDevice(
        { url: mesh.mqttUrl, id: "lantern", token: json.token },
        { app: "lantern", reported: {}, functions: {}, telemetry: [] },
      );
      await asMaster(mesh).post("devices", { id: "candle" });
      visit = await visitDashboard(browser(), { url: `http://127.0.0.1:${proxy.port}` });
      page = visit.page;
      await page.goto("/devices");
      await visit.signIn(mesh.masterKey);
    }, 180_000);
    afterAll(async () => {
      await visit?.[Symbol.asyncDispose]();
      await device?.stop();
      await proxy?.close();
    }, 120_000);

    const banner = () => page.getByRole("status").getByText("The server cannot be reached");
    const dotOf = async (id: string) =>
      await page
        .getByRole("row")
        .filter({ hasText: id })
        .locator("[class*=dot]")
        .evaluate((dot) => getComputedStyle(dot).backgroundColor);

    test("says so in a banner, and that nobody knows who is online", async () => {
      await page.getByRole("row").filter({ hasText: "lantern" }).getByText("online").waitFor();
      const online = await dotOf("lantern");
      const offline = await dotOf("candle");
      expect(online).not.toBe(offline);
      proxy.cut();
      await banner().waitFor();
      expect(await dotOf("lantern")).toBe(offline);
      proxy.restore();
      await banner().waitFor({ state: "detached" });
      await eventually(async () => (await dotOf("lantern")) === online);
    });

    test("shows a view that was asked for meanwhile once the server is back, without a reload", async () => {
      await page.evaluate(() => Object.assign(window, { isFirstLoad: true }));
      proxy.cut();
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Data" }).click();
      await banner().waitFor();
      expect(await page.getByRole("heading", { level: 1 }).count()).toBe(0);
      proxy.restore();
      await page.getByRole("heading", { level: 1, name: "Data" }).waitFor();
      await page.getByLabel("Filter").waitFor();
      expect(await page.evaluate(() => "isFirstLoad" in window)).toBe(true);
      const styles = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLLinkElement>("link[rel=stylesheet]")].map(
          ({ href, sheet }) => `${href} ${sheet === null ? "is missing" : "is there"}`,
        ),
      );
      expect(styles.length).toBeGreaterThan(2);
      expect(styles.filter((style) => style.endsWith("is missing"))).toEqual([]);
    });

    test("says on a device's page that its presence is the last known", async () => {
      await visit.open("/devices/lantern");
      await page.getByText("online", { exact: true }).waitFor();
      await page.getByText("Live", { exact: true }).waitFor();
      proxy.cut();
      await page.getByText("last known: online").waitFor();
      proxy.restore();
      await page.getByText("online", { exact: true }).waitFor();
    });

    test("says of a view that the server no longer has that it is of another release", async () => {
      await visit.open("/devices");
      const gone = "**/assets/keys-tab-*.js";
      await page.route(gone, (route) => route.fulfill({ status: 404 }));
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Keys" }).click();
      await page.getByRole("alert").filter({ hasText: "another release" }).waitFor();
      await page.unroute(gone);
      await page.getByRole("button", { name: "Reload the page" }).click();
      await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    });
  });
}
