import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { helpOption, runCommand, WrongUsage } from "@devmesh/supervisor/process/command";
import { messageOf } from "@devmesh/supervisor/process/errors";
import { stopRequest } from "@devmesh/supervisor/process/stop-request";
import { findChromium, withoutChromium } from "@devmesh/testkit/find-chromium";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launchChromium, visitDashboard } from "../browser/visit.ts";
import { type LivedInMesh, startLivedInMesh } from "./lived-in-mesh.ts";
import { type Picture, pictures } from "./pictures.ts";

/** Time for charts to be drawn and values to arrive, in milliseconds. */
const settleMs = 2_500;

const folder = join(repository, "docs/screenshots");

const usage = `Usage: npm run screenshots -- [--minutes N] [--only NAME[,NAME...]]

Starts a mesh and a simulated fleet, lets both run for N minutes (10 by default), and takes the pictures of the
dashboard and the API reference into docs/screenshots, or those of the given names.`;

interface ScreenshotCommand {
  readonly minutes: number;
  readonly only: readonly string[] | null;
}

function read(args: string[]): ScreenshotCommand | "help" {
  const { values } = parseArgs({
    args,
    options: { minutes: { type: "string", default: "10" }, only: { type: "string" }, ...helpOption },
  });
  if (values.help) return "help";
  const minutes = Number(values.minutes);
  if (!(minutes >= 0 && minutes <= 1_440)) throw new WrongUsage("--minutes takes a number from 0 to 1440.");
  return { minutes, only: values.only?.split(",") ?? null };
}

async function run({ minutes, only }: ScreenshotCommand): Promise<void> {
  const chromium = await findChromium();
  if (chromium === null) throw new Error(`No picture can be taken: ${withoutChromium}.`);
  const { signal } = stopRequest();
  process.stdout.write(`The fleet runs for ${minutes} minutes.\n`);
  await using lived = await startLivedInMesh(minutes, signal);
  const wanted = pictures(lived).filter(({ name }) => only?.includes(name) ?? true);
  await mkdir(folder, { recursive: true });
  const browser = await launchChromium(chromium);
  try {
    const session = await signIn(browser, lived);
    const failed: string[] = [];
    for (const picture of wanted) {
      signal.throwIfAborted();
      await take(browser, lived, picture, session).then(
        () => process.stdout.write(`${picture.name}.png\n`),
        (error) => failed.push(`${picture.name}: ${messageOf(error)}`),
      );
    }
    if (failed.length > 0) throw new Error(`Pictures that could not be taken:\n${failed.join("\n")}`);
  } finally {
    await browser.close();
  }
}

type SignedInState = NonNullable<BrowserContextOptions["storageState"]>;

/** One session for all pictures, so that the list of sessions shows one browser. */
async function signIn(browser: Browser, { mesh }: LivedInMesh): Promise<SignedInState> {
  await using visit = await visitDashboard(browser, mesh);
  await visit.page.goto("/");
  await visit.page.getByLabel(/^Stay signed in/).check();
  await visit.signIn(mesh.masterKey);
  return await visit.context.storageState();
}

async function take(
  browser: Browser,
  { mesh }: LivedInMesh,
  { name, path, options, signedOut = false, prepare }: Picture,
  session: SignedInState,
): Promise<void> {
  await using visit = await visitDashboard(browser, mesh, {
    viewport: { width: 1440, height: 900 },
    ...options,
    ...(!signedOut && { storageState: session }),
  });
  const { page } = visit;
  await page.goto(path);
  await page.getByRole("heading").first().waitFor();
  await isLoaded(page);
  await prepare?.(visit);
  await sleep(settleMs);
  await page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled", caret: "hide" });
}

async function isLoaded(page: Page): Promise<void> {
  await page.getByText("Loading", { exact: true }).first().waitFor({ state: "detached" });
  await page.locator(".mantine-Skeleton-root").first().waitFor({ state: "detached" });
}

await runCommand({ usage, read, run });
