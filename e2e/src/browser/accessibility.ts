import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";

const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * The serious and critical violations that axe-core finds on the page, a line each with its elements. `rules`: those on
 * colour alone, for a page that was searched in another theme. Default: all.
 */
export async function seriousViolations(page: Page, rules: "all" | "colour" = "all"): Promise<string[]> {
  // Evaluated by the debugger, since the page's policy allows no foreign script.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(source);
  const options: RunOptions = {
    resultTypes: ["violations"],
    ...(rules === "colour" && { runOnly: ["color-contrast", "link-in-text-block"] }),
  };
  const { violations } = await page.evaluate(
    (given) =>
      (window as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } }).axe.run(given),
    options,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => {
      const elements = nodes.map(({ target, any }) => `${target.join(" ")} ${any[0]?.message ?? ""}`.trim());
      return `${id} (${help}): ${elements.join("; ")}`;
    });
}

/** What {@link seriousViolations} finds in the dark theme and in the light one; the page follows the system's. */
export async function violationsInBothThemes(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const [colorScheme, rules] of [
    ["dark", "colour"],
    ["light", "all"],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
    await endTransitions(page);
    for (const violation of await seriousViolations(page, rules)) found.push(`${colorScheme}: ${violation}`);
  }
  return found;
}

/** Ends the change from one colour to another: halfway neither can be read. */
async function endTransitions(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const rootsIn = (root: Document | ShadowRoot): (Document | ShadowRoot)[] => [
      root,
      ...[...root.querySelectorAll("*")].flatMap(({ shadowRoot }) => (shadowRoot ? rootsIn(shadowRoot) : [])),
    ];
    const running = () =>
      rootsIn(document)
        .flatMap((root) => root.getAnimations())
        .filter((animation) => animation instanceof CSSTransition);
    // The end of one can begin that of what inherits from it.
    for (let ending = running(); ending.length > 0; ending = running()) {
      for (const transition of ending) transition.finish();
      await new Promise(requestAnimationFrame);
    }
  });
}
