import type { TestMesh } from "@devmesh/testkit/mesh";
import { describe, expect, test } from "@jest/globals";
import type { Browser } from "playwright-core";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { transferredBytes, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster } from "../../src/tenant.ts";

/** Enough to detect a page that keeps a row for each, or reads all: three pages of the API. */
const added = 650;

/** Of the two typefaces, as far as Western European text needs them. */
const fontBytes = 115_000;

/** The page of the dashboard and its first load. The mesh has no device before. */
export function firstLoad(browser: () => Browser, shared: () => TestMesh): void {
  describe("the first load of the dashboard", () => {
    test("the policy of its page lets run only scripts of its own files", async () => {
      const page = await fetch(`${shared().url}/devices`, { headers: { accept: "text/html" } });
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

    test("the first load is below 300 KB and the fonts, up to the list of devices", async () => {
      // Brotli, which a browser takes otherwise, is smaller.
      const extraHTTPHeaders = { "Accept-Encoding": "gzip" };
      await using cold = await visitDashboard(browser(), shared(), { extraHTTPHeaders });
      const encodings = new Set<string | undefined>();
      cold.page.on("response", (response) => {
        if (response.url().endsWith(".js")) encodings.add(response.headers()["content-encoding"]);
      });
      const bytes = await transferredBytes(cold.page);
      await cold.page.goto("/");
      await cold.page.getByLabel("Master key").waitFor();
      const signInPage = bytes();
      await cold.signIn(shared().masterKey);
      await cold.page.getByText("There are no devices yet").waitFor();
      expect([...encodings]).toEqual(["gzip"]);
      expect(signInPage).toBeGreaterThan(50_000);
      expect(signInPage).toBeLessThan(300_000 + fontBytes);
      expect(bytes()).toBeGreaterThan(signInPage);
      expect(bytes()).toBeLessThan(300_000 + fontBytes);
    });
  });
}

/** A list that is longer than the screen. The mesh has at most 100 devices before. */
export function longList(browser: () => Browser, shared: () => TestMesh): void {
  describe("a long list of the dashboard", () => {
    test("a list of hundreds of devices is read page by page, each once, and only rows in sight are drawn", async () => {
      const mesh = shared();
      await using visit = await visitDashboard(browser(), mesh);
      const ids = Array.from({ length: added }, (_, nth) => `device-${nth}`).values();
      const total = (added + (await asMaster(mesh).get("devices")).json.length).toLocaleString("en");
      const create = async () => {
        for (const id of ids) {
          const { status } = await asMaster(mesh).post("devices", { id });
          expect(status).toBe(201);
        }
      };
      await Promise.all(Array.from({ length: 16 }, create));
      const { page } = visit;
      const [oldest] = (await asMaster(mesh).get("devices?limit=1&order=asc")).json;
      const asked: string[] = [];
      page.on("request", (request) => {
        const { pathname, search } = new URL(request.url());
        if (pathname === "/api/v2/devices") asked.push(search);
      });
      await page.goto("/devices");
      await visit.signIn(mesh.masterKey);
      await page.getByText(`100 of ${total} devices read`).waitFor();
      expect(asked).toEqual(["?limit=100&order=desc"]);
      const list = page.getByRole("region", { name: "List of devices" });
      const rows = list.getByRole("row");
      const whole = page.getByText(`${total} devices`, { exact: true });
      let mostRows = await rows.count();
      while ((await whole.count()) === 0) {
        await list.evaluate((frame) => frame.scrollBy(0, frame.clientHeight * 4));
        mostRows = Math.max(mostRows, await rows.count());
      }
      await list.evaluate((frame) => frame.scrollTo(0, frame.scrollHeight));
      await rows.last().getByText(oldest.id, { exact: true }).waitFor();
      expect(mostRows).toBeLessThan(60);
      expect(asked.slice(1).map((query) => query.replace(/after=\d+/, "after=N"))).toEqual([
        "?limit=500&after=N&order=desc",
        "?limit=500&after=N&order=desc",
      ]);
      expect(new Set(asked).size).toBe(asked.length);

      await page.getByRole("combobox", { name: "Filter devices" }).fill("device-49");
      await page.getByText("11 devices", { exact: true }).waitFor();
      expect(asked.slice(3).map((query) => new URLSearchParams(query).get("where"))).toEqual([
        '{"text":{"all":["device-49"]}}',
      ]);

      const byId = page.getByRole("columnheader", { name: "ID" }).getByRole("button");
      await byId.click();
      await byId.click();
      await page.locator("th[aria-sort=descending]", { hasText: "ID" }).waitFor();
      expect((await list.getByRole("link").allTextContents()).slice(0, 3)).toEqual([
        "device-499",
        "device-498",
        "device-497",
      ]);
      // All that match were there, so nothing had to be asked for.
      expect(asked).toHaveLength(4);
      expect(visit.pageErrors).toEqual(noPageErrors);
    }, 120_000);
  });
}
