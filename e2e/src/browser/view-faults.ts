import type { Page } from "playwright-core";
import { seriousViolations } from "./accessibility.ts";

/**
 * What is wrong with the shown view in the light theme, in the dark one and on a phone: violations of accessibility,
 * and content that is wider than the screen. The page then has its former size again.
 */
export async function viewFaults(page: Page): Promise<string[]> {
  const faults: string[] = [];
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
    for (const violation of await seriousViolations(page)) faults.push(`${colorScheme}: ${violation}`);
  }
  const before = page.viewportSize() ?? { width: 1280, height: 800 };
  await page.setViewportSize({ width: 390, height: 844 });
  const overhang = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (overhang > 0) faults.push(`${overhang} px do not fit on a phone`);
  await page.setViewportSize(before);
  return faults;
}
