import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, expect } from "@jest/globals";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { noPageErrors } from "../src/browser/page-errors.ts";
import { transferredBytes, type Visit, visitDashboard } from "../src/browser/visit.ts";
import { asMaster } from "../src/tenant.ts";
import { testsInOrder } from "../src/tests-in-order.ts";

/** Enough to detect a page that keeps a row for each, or reads all. */
const devices = 1_500;

describeInBrowser("the limits of the dashboard", (browser) => {
  const test = testsInOrder(() => visit.describe());
  let mesh: TestMesh;
  let visit: Visit;

  beforeAll(async () => {
    mesh = await startMesh();
    visit = await visitDashboard(browser(), mesh);
  }, 180_000);
  afterAll(async () => {
    await visit?.[Symbol.asyncDispose]();
    await mesh?.stop();
  }, 120_000);

  test("the policy of its page lets run only scripts of its own files", async () => {
    const page = await fetch(`${mesh.url}/devices`, { headers: { accept: "text/html" } });
    const policy = page.headers.get("content-security-policy") ?? "";
    const directives = new Map(
      policy.split(";").map((directive) => {
        const [name = "", ...sources] = directive.trim().split(/\s+/);
        return [name, sources];
      }),
    );
    expect(directives.get("script-src")).toEqual(["'self'"]);
    expect(directives.get("connect-src")).toEqual(["'self'"]);
    expect(directives.get("frame-ancestors")).toEqual(["'none'"]);
    expect(await page.text()).not.toMatch(/<script(?![^>]* src=)[^>]*>|\son\w+=/);
  });

  test("the first load is below 300 KB, up to the list of devices", async () => {
    // Brotli, which a browser takes otherwise, is smaller.
    const extraHTTPHeaders = { "Accept-Encoding": "gzip" };
    await using cold = await visitDashboard(browser(), mesh, { extraHTTPHeaders });
    const encodings = new Set<string | undefined>();
    cold.page.on("response", (response) => {
      if (response.url().endsWith(".js")) encodings.add(response.headers()["content-encoding"]);
    });
    const bytes = await transferredBytes(cold.page);
    await cold.page.goto("/");
    await cold.page.getByLabel("Master key").waitFor();
    const signInPage = bytes();
    await cold.signIn(mesh.masterKey);
    await cold.page.getByText("There are no devices yet").waitFor();
    expect([...encodings]).toEqual(["gzip"]);
    expect(signInPage).toBeGreaterThan(50_000);
    expect(signInPage).toBeLessThan(300_000);
    expect(bytes()).toBeGreaterThan(signInPage);
    expect(bytes()).toBeLessThan(300_000);
  });

  test("a list of thousands of devices is read page by page, each once, and only rows in sight are drawn", async () => {
    const ids = Array.from({ length: devices }, (_, nth) => `device-${nth}`).values();
    const create = async () => {
      for (const id of ids) {
        const { status } = await asMaster(mesh).post("devices", { id });
        expect(status).toBe(201);
      }
    };
    await Promise.all(Array.from({ length: 16 }, create));
    const { page } = visit;
    const asked: string[] = [];
    page.on("request", (request) => {
      const { pathname, search } = new URL(request.url());
      if (pathname === "/api/v2/devices") asked.push(search);
    });
    await page.goto("/devices");
    await visit.signIn(mesh.masterKey);
    await page.getByText("100 of 1,500 devices read").waitFor();
    expect(asked).toEqual(["?limit=100&order=desc"]);
    const list = page.getByRole("region", { name: "List of devices" });
    const rows = list.getByRole("row");
    const whole = page.getByText("1,500 devices", { exact: true });
    let mostRows = await rows.count();
    while ((await whole.count()) === 0) {
      await list.evaluate((frame) => frame.scrollBy(0, frame.clientHeight * 4));
      mostRows = Math.max(mostRows, await rows.count());
    }
    await list.evaluate((frame) => frame.scrollTo(0, frame.scrollHeight));
    await rows
      .last()
      .getByText(/^device-/)
      .waitFor();
    expect(mostRows).toBeLessThan(60);
    expect(asked.slice(1).map((query) => query.replace(/after=\d+/, "after=N"))).toEqual([
      "?limit=500&after=N&order=desc",
      "?limit=500&after=N&order=desc",
      "?limit=500&after=N&order=desc",
    ]);
    expect(new Set(asked).size).toBe(asked.length);

    await page.getByLabel("Filter devices").fill("device-149");
    await page.getByText("11 devices", { exact: true }).waitFor();
    expect(asked.slice(4)).toEqual(["?limit=100&order=desc&filter=device-149"]);

    const byId = page.getByRole("columnheader", { name: "ID" }).getByRole("button");
    await byId.click();
    await byId.click();
    await page.locator("th[aria-sort=descending]", { hasText: "ID" }).waitFor();
    expect((await list.getByRole("link").allTextContents()).slice(0, 3)).toEqual([
      "device-1499",
      "device-1498",
      "device-1497",
    ]);
    // All that match were there, so nothing had to be asked for.
    expect(asked).toHaveLength(5);
    expect(visit.pageErrors).toEqual(noPageErrors);
  }, 120_000);
});
