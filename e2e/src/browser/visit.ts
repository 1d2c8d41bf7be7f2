import { defaultPatienceMs } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { type PageErrors, watchPageErrors } from "./page-errors.ts";

/** A visit of the dashboard in a fresh browser context. */
export interface Visit extends AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the dashboard must never do; see {@link PageErrors}. */
  readonly pageErrors: PageErrors;
  /** Opens a view by its path and waits for its heading. */
  open(path: string): Promise<void>;
  /** Goes to a view as its link does, once the dashboard is loaded: that costs a quarter of what {@link open} does. */
  follow(path: string): Promise<void>;
  /** Signs in at the sign-in page and waits for the dashboard. */
  signIn(key: string): Promise<void>;
  /** Answers the dialog that asks for a master key, and waits for its end. */
  enterMasterKey(key: string): Promise<void>;
  /** Opens a tab by the navigation and waits for its heading. */
  goTo(tab: string): Promise<void>;
  /** Signs out by the menu of the key. */
  signOut(): Promise<void>;
  /** Address and accessible content of the page, for the message of a failed test. */
  describe(): Promise<string>;
}

/** Begins a visit with an empty page and access to the clipboard; the caller ends it. */
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
  context.setDefaultTimeout(defaultPatienceMs);
  const pageErrors = await watchPageErrors(context, url);
  const page = await context.newPage();
  const heading = (name?: string) =>
    page.getByRole("heading", { level: 1, ...(name !== undefined && { name, exact: true }) });
  return {
    context,
    page,
    pageErrors,
    async open(path) {
      await page.goto(path);
      await heading().waitFor();
    },
    async follow(path) {
      // The router listens to it.
      await page.evaluate((to) => history.pushState(null, "", to), path);
      await heading().waitFor();
    },
    async signIn(key) {
      await page.getByLabel("Master key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("navigation", { name: "Views" }).waitFor();
    },
    async enterMasterKey(key) {
      const dialog = page.getByRole("dialog", { name: "Enter a master key" });
      await dialog.getByLabel("Master key").fill(key);
      await dialog.getByRole("button", { name: "Continue" }).click();
      await dialog.waitFor({ state: "detached" });
    },
    async goTo(tab) {
      await page
        .getByRole("navigation", { name: "Views" })
        .getByRole("link", { name: tab, exact: true })
        .click();
      await heading(tab).waitFor();
    },
    async signOut() {
      await signOutOf(page);
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

/** Signs out of a page by the menu of the key. */
export async function signOutOf(page: Page): Promise<void> {
  await page.getByRole("button", { name: /: menu$/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
}

/** Starts a headless browser; the caller closes it. Sandboxed, except for root, which Chromium does not support. */
export async function launchChromium(path: string): Promise<Browser> {
  return await chromium.launch({
    executablePath: path,
    chromiumSandbox: process.getuid?.() !== 0,
    // Containers have too little shared memory for it.
    args: ["--disable-dev-shm-usage"],
  });
}

/** Counts the bytes that a page loads from now on, compressed and with headers. A stream counts once it ends. */
export async function transferredBytes(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  return () => bytes;
}
