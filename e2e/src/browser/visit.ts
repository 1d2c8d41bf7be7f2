import type { TestMesh } from "@devmesh/testkit/mesh";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { type Misdeeds, watchForMisdeeds } from "./page-errors.ts";

/** Longest wait for one thing in the browser, in milliseconds: machines that run tests are busy. */
const PATIENCE_MS = 20_000;

/** Somebody's visit of the dashboard: a browser with no history, storage or cache of anybody else's. */
export interface Visit extends AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the dashboard must never do, as far as it has done it. */
  readonly misdeeds: Misdeeds;
  /** Opens a view by its path and waits for its heading. */
  open(path: string): Promise<void>;
  /** Signs in with a master key at the sign-in page, which must be shown, and waits for the frame of the dashboard. */
  signIn(key: string): Promise<void>;
  /** Follows the navigation to a tab and waits for its heading. */
  goTo(tab: string): Promise<void>;
  /** Address and content of the page, as a screen reader tells it, for the message of a test that failed. */
  describe(): Promise<string>;
}

/** Begins a visit with an empty page; the caller ends it. The clipboard may be used. */
export async function visitDashboard(
  browser: Browser,
  { url }: Pick<TestMesh, "url">,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    baseURL: url,
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    colorScheme: "light",
    reducedMotion: "reduce",
    acceptDownloads: true,
    ...options,
  });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  context.setDefaultTimeout(PATIENCE_MS);
  const misdeeds = await watchForMisdeeds(context, url);
  const page = await context.newPage();
  const heading = (name?: string) =>
    page.getByRole("heading", { level: 1, ...(name !== undefined && { name, exact: true }) });
  return {
    context,
    page,
    misdeeds,
    async open(path) {
      await page.goto(path);
      await heading().waitFor();
    },
    async signIn(key) {
      await page.getByLabel("Master key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("navigation", { name: "Views" }).waitFor();
    },
    async goTo(tab) {
      await page
        .getByRole("navigation", { name: "Views" })
        .getByRole("link", { name: tab, exact: true })
        .click();
      await heading(tab).waitFor();
    },
    async describe() {
      const content = await page.locator("body").ariaSnapshot({ timeout: 1_000 });
      return `The page ${page.url()} showed:\n${content.slice(0, 2_500)}`;
    },
    async [Symbol.asyncDispose]() {
      await context.close();
    },
  };
}
