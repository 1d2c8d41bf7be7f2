import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser, Locator, Page } from "playwright-core";
import { seriousViolations, violationsInBothThemes } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { drawn, layoutFaults, viewFaults } from "../../src/browser/view-faults.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { type SmallFleet, startSmallFleet } from "../../src/small-fleet.ts";
import { asMaster } from "../../src/tenant.ts";

const phone = { width: 390, height: 844 };

/** Every tab, in the order of the navigation, with its heading. */
const tabs: Readonly<Record<string, string>> = {
  "/home": "Home",
  "/devices": "Devices",
  "/data": "Data",
  "/boards": "Boards",
  "/alerts": "Alerts",
  "/jobs": "Jobs",
  "/firmware": "Firmware",
  "/keys": "Keys",
  "/customers": "Customers",
  "/webhooks": "Webhooks",
  "/services": "Services",
};

/** Every section of a device, in the order in which they are offered. */
const sections = ["", "/shadow", "/rpc", "/data", "/work", "/log", "/access", "/credentials"].map(
  (path) => `/devices/roof-east${path}`,
);

/** Heading of each view by its path, some of them as they look in a second state. */
const views: Readonly<Record<string, string>> = {
  ...tabs,
  ...Object.fromEntries(sections.map((path) => [path, "Weather, roof east"])),
  "/devices?filter=lyon&sort=name&direction=descending": "Devices",
  "/devices/cistern-pump/shadow": "Pump, cistern",
  "/devices/none": "none",
  "/alerts/rules": "Alerts",
  "/alerts/channels": "Alerts",
  "/alerts/silences": "Alerts",
  "/alerts/rules/new": "New rule",
  "/alerts/none": "Alert",
  "/webhooks/none": "Webhook",
  "/boards/none": "Board",
  "/jobs/new": "New job",
  "/jobs/new?kind=firmware": "New job",
  "/data?filter=celsius": "Data",
  "/no/such/view": "Page not found",
};

/**
 * What opens each dialog, by the path of its view: names of buttons and of boxes to be checked, one after the
 * other.
 */
const dialogs: readonly (readonly [path: string, ...controls: string[]])[] = [
  ["/devices", "Add device"],
  ["/devices?filter=lyon&sort=name&direction=descending", "Save view"],
  ["/devices", "Select roof-east", "Delete"],
  ["/boards", "New board"],
  ["/firmware", "Upload firmware", "More"],
  ["/keys", "Create key"],
  ["/keys", "Show the keys"],
  ["/keys", "Delete the key Night shift"],
  ["/alerts/channels", "New channel"],
  ["/alerts/silences", "New silence"],
  ["/webhooks", "New webhook", "Only of some devices"],
  ["/customers", "Invite customer"],
  ["/customers", "Remove ann.moreau@example.com"],
  ["/devices/roof-east/credentials", "Replace the token"],
];

/** A number with a point before its decimals or two commas between its thousands, a date with slashes, half a day. */
const englishForm =
  /(?<![\w.,:/-])(?:\d+\.(?:\d{1,2}|\d{4,})|\d{1,3}(?:,\d{3}){2,})(?![\w.,:/-])|\d\/\d{1,2}\/\d|\d [AP]M\b/;

const germanForms: Readonly<Record<string, RegExp>> = {
  decimals: /(?<![\d.])\d+,\d{1,2}(?!\d)/,
  thousands: /(?<![\d.])\d{1,3}\.\d{3}(?![\d.])/,
  date: /^\d{2}\.\d{2}\.\d{2}$/,
};

/** Texts of the page that the dashboard writes: neither code, such as a record, nor what people enter. */
function writtenTexts(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll("main *")]
      .filter(
        (element) => element.closest("pre, code, textarea, style, [contenteditable], .cm-editor") === null,
      )
      .flatMap((element) => [...element.childNodes])
      .filter((node) => node.nodeType === Node.TEXT_NODE)
      .map((node) => node.textContent ?? ""),
  );
}

/** Each view, with a fleet that looks like one. The mesh has no device before. */
export function allViews(browser: () => Browser, shared: () => TestMesh): void {
  describe("the views of the dashboard", () => {
    let mesh: TestMesh;
    let fleet: SmallFleet;
    const visits: Visit[] = [];

    beforeAll(async () => {
      mesh = shared();
      fleet = await startSmallFleet(mesh);
      for (let nth = 0; nth < 120; nth += 1) {
        const celsius = Number((19 + 3 * Math.sin(nth / 12) + Math.sin(nth / 2) / 5).toFixed(2));
        fleet.publish("roof-east", "climate", { celsius, percent: Math.round(55 - 4 * Math.sin(nth / 15)) });
      }
      await eventually(
        async () => (await asMaster(mesh).get("data?filter=climate&limit=200")).json.length === 120,
      );
    }, 180_000);
    // A page that stays open is kept up to date, which costs the tests after it.
    afterEach(async () => {
      for (const visit of visits) await visit[Symbol.asyncDispose]();
    });
    afterAll(async () => {
      await fleet?.[Symbol.asyncDispose]();
    }, 120_000);

    /** A visit that is signed in; it ends with the test. */
    async function signedIn(options: Parameters<typeof visitDashboard>[2] = {}): Promise<Visit> {
      const visit = await visitDashboard(browser(), mesh, options);
      visits.push(visit);
      await visit.page.goto("/");
      await visit.signIn(mesh.masterKey);
      return visit;
    }

    /** Goes to a view and waits until all that it reads is there. */
    async function show({ page, follow }: Visit, path: string, title = views[path] ?? ""): Promise<void> {
      await follow(path);
      await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
      await page.getByText("Loading", { exact: true }).first().waitFor({ state: "detached" });
    }

    const isFocused = (control: Locator) => control.evaluate((element) => element === document.activeElement);

    /** Presses Tab until a control has the focus. */
    async function tabTo(page: Page, control: Locator): Promise<void> {
      await control.waitFor();
      for (let presses = 0; presses < 60; presses += 1) {
        if (await isFocused(control)) return;
        await page.keyboard.press("Tab");
      }
      throw new Error("the keyboard does not reach it");
    }

    test("are those that the navigation and the page of a device lead to", async () => {
      const visit = await signedIn();
      const linksOf = async (name: string) =>
        await visit.page
          .getByRole("navigation", { name })
          .getByRole("link")
          .evaluateAll((links) => links.map((link) => [link.getAttribute("href"), link.textContent]));
      expect(await linksOf("Views")).toEqual([...Object.entries(tabs), ["/docs", "API"]]);
      await show(visit, "/devices/roof-east");
      expect((await linksOf("Sections of the device")).map(([href]) => href)).toEqual(sections);
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

    test("are searched in the colours of a theme, not halfway to them", async () => {
      await using context = await browser().newContext({ colorScheme: "light" });
      const page = await context.newPage();
      await page.setContent('<html lang="en"><title>x</title><main><h1>x</h1><div></div></main></html>');
      await page.evaluate(() => {
        const dark = matchMedia("(prefers-color-scheme: dark)");
        const follow = () => {
          document.documentElement.dataset.mantineColorScheme = dark.matches ? "dark" : "light";
        };
        dark.addEventListener("change", follow);
        follow();
        const shadow = document.querySelector("div")?.attachShadow({ mode: "open" });
        if (shadow)
          shadow.innerHTML = `<style>
            button { color: black; background: #ddd; transition: background 3600s linear }
            @media (prefers-color-scheme: dark) { button { color: white; background: black } }
          </style><button>Start</button>`;
      });
      await drawn(page);
      expect(await violationsInBothThemes(page)).toEqual([]);
    });

    test("are searched by what finds numbers and times in English form", () => {
      const english = ["20.31 °C", "1,512,000 records", "11/24/2026", "24/11/2026", "3:04:05 PM"];
      const german = ["20,31 °C", "53,125", "1.512 records", "24.11.26", "24.11.2026, 15:04:05"];
      const neither = ["2.4.1", "127.0.0.1:1883", "pump-1.5", "page 1, 2"];
      expect([...german, ...neither].filter((text) => englishForm.test(text))).toEqual([]);
      expect(english.filter((text) => englishForm.test(text))).toEqual(english);
    });

    test("have no serious violation of accessibility, on the page to sign in, in both themes", async () => {
      const visit = await visitDashboard(browser(), mesh);
      visits.push(visit);
      await visit.page.goto("/");
      await visit.page.getByLabel("Master key").waitFor();
      expect(await viewFaults(visit.page)).toEqual([]);
    });

    test("have none either, fit into each window without cutting a text, and write German for a German browser", async () => {
      const visit = await signedIn({ locale: "de-DE" });
      const texts: string[] = [];
      const found: Record<string, string[]> = {};
      for (const path of Object.keys(views)) {
        await show(visit, path);
        const shown = await writtenTexts(visit.page);
        texts.push(...shown);
        const faults = [...shown.filter((text) => englishForm.test(text)), ...(await viewFaults(visit.page))];
        if (faults.length > 0) found[path] = faults;
      }
      expect(found).toEqual({});
      for (const [form, pattern] of Object.entries(germanForms))
        expect([form, texts.some((text) => pattern.test(text))]).toEqual([form, true]);
    }, 300_000);

    test("have dialogs without a serious violation, in the light theme and in the dark one", async () => {
      const visit = await signedIn();
      const { page } = visit;
      const found: Record<string, string[]> = {};
      for (const [path, ...controls] of dialogs) {
        // Closes the dialog before.
        await visit.open(path);
        await show(visit, path);
        for (const name of controls)
          await page
            .getByRole("button", { name, exact: true })
            .or(page.getByRole("checkbox", { name, exact: true }))
            .click();
        await page.getByRole("dialog").waitFor();
        const violations = await violationsInBothThemes(page);
        if (violations.length > 0) found[`${path} › ${controls.join(" › ")}`] = violations;
      }
      expect(found).toEqual({});
    }, 180_000);

    test("have a bar for selected rows without a serious violation, in the light theme and in the dark one", async () => {
      const visit = await signedIn();
      await show(visit, "/devices");
      await visit.page.getByRole("checkbox", { name: "Select roof-east" }).check();
      await visit.page.getByRole("region", { name: "Selected rows" }).waitFor();
      expect(await violationsInBothThemes(visit.page)).toEqual([]);
    });

    test("can be walked through by the keyboard alone, from the sign-in to a device", async () => {
      const visit = await visitDashboard(browser(), mesh);
      visits.push(visit);
      const { page } = visit;
      await page.goto("/");
      await eventually(() => isFocused(page.getByLabel("Master key")));
      await page.keyboard.type(mesh.masterKey);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Home", exact: true }).waitFor();
      await page.goto("/devices");
      const device = page.getByRole("link", { name: "roof-east", exact: true });
      await device.waitFor();
      await page.keyboard.press("Tab");
      expect(await isFocused(page.getByRole("link", { name: "Skip to the content" }))).toBe(true);
      await page.keyboard.press("Enter");
      await tabTo(page, device);
      await page.keyboard.press("Enter");
      // The heading of what was navigated to has the focus, so that a screen reader announces it.
      const heading = page.getByRole("heading", { level: 1, name: "Weather, roof east" });
      await heading.waitFor();
      await eventually(() => isFocused(heading));
      const shadow = page.getByRole("navigation", { name: "Sections of the device" });
      await tabTo(page, shadow.getByRole("link", { name: "Shadow" }));
      await page.keyboard.press("Enter");
      await page.getByLabel("Desired").waitFor();
    });

    test("keep the focus in a dialog, and give it back when Escape closes that", async () => {
      const visit = await signedIn();
      const { page } = visit;
      await show(visit, "/devices");
      const opener = page.getByRole("button", { name: "Add device" });
      await tabTo(page, opener);
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog", { name: "Add a device" });
      await eventually(() => isFocused(dialog.getByLabel("ID")));
      const visited = new Set<string>();
      for (let presses = 0; presses < 12; presses += 1) {
        await page.keyboard.press("Tab");
        const focused = dialog.locator(":focus");
        expect(await focused.count()).toBe(1);
        visited.add(await focused.evaluate((element) => element.outerHTML));
      }
      expect(visited.size).toBeGreaterThan(3);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      expect(await isFocused(opener)).toBe(true);
    });

    test("lead to each other on a phone, by a navigation that opens", async () => {
      const visit = await signedIn({ viewport: phone, isMobile: true, hasTouch: true });
      await visit.page.getByRole("button", { name: "Open the navigation" }).tap();
      await visit.goTo("Keys");
      expect(await layoutFaults(visit.page)).toEqual([]);
    });

    test("are searched by what finds a cut text, a box that is too narrow and a list that scrolls sideways", async () => {
      await using context = await browser().newContext({ viewport: { width: 300, height: 300 } });
      const page = await context.newPage();
      const cut = "width: 50px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap";
      await page.setContent(
        `<main><p style="${cut}">a text that is cut</p><p style="${cut}" title="whole">another that is cut</p>
        <p style="width: 50px">overhanging</p><section aria-label="List" style="width: 50px; overflow: auto">
        <table style="display: block; width: 80px"><tr><td>row</td></tr></table></section></main>`,
      );
      expect(await layoutFaults(page)).toEqual([
        '300 px: p "a text that is cut" is cut without a title',
        expect.stringMatching(/^300 px: p "overhanging" overflows by \d+ px$/),
        '300 px: section "List" scrolls by 30 px',
      ]);
    });

    test("leave room for the side panel in a window of 1280 px and in narrower ones", async () => {
      const visit = await signedIn();
      await show(visit, "/devices?peek=roof-east", "Devices");
      const panel = visit.page.getByRole("dialog", { name: "Device roof-east" });
      await panel.getByRole("heading", { name: "Weather, roof east" }).waitFor();
      for (const width of [1280, 1120, 1024]) {
        await visit.page.setViewportSize({ width, height: 800 });
        expect(await layoutFaults(visit.page)).toEqual([]);
      }
    });

    test("fit on a phone, and cards keep their content, with the longest id, name and label", async () => {
      const id = "w".repeat(64);
      const name = "M".repeat(256);
      const labels = ["L".repeat(64)];
      await asMaster(mesh).post("devices", { id, name, shadow: { tags: { labels } } });
      await asMaster(mesh).post("keys", { name, device_id: id });
      const visit = await signedIn({ viewport: phone, isMobile: true, hasTouch: true });
      const { page } = visit;
      /** Boxes whose content overflows, the page among them, except in regions that scroll. */
      const overflowing = () =>
        page.evaluate(() =>
          [...document.querySelectorAll("html, main *, [role=dialog] *")]
            .filter((box) => box.scrollWidth > box.clientWidth && box.clientWidth > 1)
            .filter((box) => box.localName === "html" || getComputedStyle(box).overflowX === "visible")
            .filter((box) => box.closest(".mantine-ScrollArea-root") === null)
            .map((box) => `${box.localName} ${box.className}: ${box.textContent?.slice(0, 30)}`),
        );
      const found: Record<string, string[]> = {};
      const note = async (where: string) => {
        const boxes = await overflowing();
        if (boxes.length > 0) found[where] = boxes;
      };
      for (const path of ["", "/shadow", "/rpc", "/data", "/log", "/access", "/credentials"]) {
        await show(visit, `/devices/${id}${path}`, name);
        await note(path);
      }
      await show(visit, `/devices/${id}`, name);
      await page.getByRole("button", { name: "More actions" }).tap();
      await page.getByRole("menuitem", { name: "Delete the device" }).tap();
      await page.getByRole("dialog").waitFor();
      await note("the deletion");
      for (const path of ["/devices", "/keys", `/data?device=${id}`]) {
        await show(visit, path, views[path] ?? "Data");
        await note(path);
      }
      await asMaster(mesh).delete(`devices/${id}`);
      expect(found).toEqual({});
    });

    test("have their filters in a sheet on a phone", async () => {
      const visit = await signedIn({ viewport: phone, isMobile: true, hasTouch: true });
      const { page } = visit;
      await show(visit, "/data?filter=climate", "Data");
      expect(await page.getByLabel("Filter", { exact: true }).isVisible()).toBe(true);
      expect(await page.getByLabel("Device", { exact: true }).count()).toBe(0);
      const opener = page.getByRole("button", { name: "Filters" });
      await opener.tap();
      const sheet = page.getByRole("dialog", { name: "Filters" });
      await sheet.getByLabel("Device").fill("roof-west");
      expect((await sheet.boundingBox())?.y).toBeGreaterThan(phone.height / 3);
      expect(await violationsInBothThemes(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await sheet.waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Filters (1)" }).waitFor();
      await eventually(() => isFocused(opener));
      expect(new URL(page.url()).search).toBe("?filter=climate&device=roof-west");
    });

    test("have tables that fold on a phone: none is cut, and each value has its heading", async () => {
      const master = asMaster(mesh);
      const { json: file } = await master.post("firmware", {
        name: "lamp",
        version: "3.2.0",
        size: 1,
        sha256: "0".repeat(64),
      });
      const { json: job } = await master.post("jobs", {
        name: "Read the versions",
        target: { ids: ["roof-east", "gate-lamp"] },
        action: { kind: "rpc", func: "Sys.GetInfo" },
      });
      const visit = await signedIn({ viewport: phone, isMobile: true, hasTouch: true });
      const { page } = visit;
      const tables: Readonly<Record<string, readonly [title: string, table: string, value: string]>> = {
        "/keys": ["Keys", "Keys", "Created"],
        "/customers": ["Customers", "Customers", "Invited"],
        "/firmware": ["Firmware", "Firmware", "Size"],
        "/jobs": ["Jobs", "Jobs", "Succeeded"],
        "/services": ["Services", "Services", "Requests/s"],
        [`/jobs/${job.id}`]: ["Read the versions", "Devices of the job", "Outcome"],
        "/devices/roof-east/work": ["Weather, roof east", "Work of the device, newest first", "Ends"],
      };
      for (const [path, [title, name, heading]] of Object.entries(tables)) {
        await show(visit, path, title);
        const table = page.getByRole("table", { name, exact: true });
        const cell = table.locator(`tbody [data-label="${heading}"]`).first();
        await cell.waitFor();
        const shown = await cell.evaluate((element) => getComputedStyle(element, "::before").content);
        const widest = await table.evaluate((element) =>
          Math.max(
            ...[...element.querySelectorAll("tbody :is(td, th)")].map(
              (each) => each.getBoundingClientRect().right,
            ),
          ),
        );
        expect([path, shown, widest <= phone.width]).toEqual([path, `"${heading}"`, true]);
      }
      expect(await seriousViolations(page)).toEqual([]);
      await master.delete(`firmware/${file.id}`);
      await page.setViewportSize({ width: 1280, height: 800 });
      await show(visit, "/keys");
      const keys = page.getByRole("table", { name: "Keys", exact: true });
      await keys.waitFor();
      await eventually(async () => (await keys.getAttribute("data-folded")) === null);
    });

    test("met no violation of the page's policy, no error, no request elsewhere and no secret in a URL", () => {
      for (const { pageErrors } of visits) expect(pageErrors).toEqual(noPageErrors);
    });
  });
}
