import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "@devmesh/testkit/mesh";
import type { Page } from "playwright-core";

const folder = join(repository, "docs", "screenshots");

/**
 * Whether pictures for the documentation are asked for: `npm run screenshots -w e2e`. Otherwise a test run changes no
 * file.
 */
export const picturesAreAskedFor = process.env.DEVMESH_SCREENSHOTS === "1";

/** Puts a picture of what the page shows into `docs/screenshots/NAME.png`, if pictures are asked for. */
export async function photograph(page: Page, name: string): Promise<void> {
  if (!picturesAreAskedFor) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled", caret: "hide" });
}
