import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";

const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The serious and critical violations that axe-core finds on the page, a line each with its elements. */
export async function seriousViolations(page: Page): Promise<string[]> {
  // Evaluated by the debugger, since the page's policy allows no foreign script.
  await page.evaluate(source);
  const { violations } = await page.evaluate(() =>
    (window as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } }).axe.run({
      resultTypes: ["violations"],
    }),
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => {
      const elements = nodes.map(({ target, any }) => `${target.join(" ")} ${any[0]?.message ?? ""}`.trim());
      return `${id} (${help}): ${elements.join("; ")}`;
    });
}
