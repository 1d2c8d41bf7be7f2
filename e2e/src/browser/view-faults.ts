import type { Page } from "playwright-core";
import { violationsInBothThemes } from "./accessibility.ts";

/** Widths of windows that each view is measured in: with a navigation of words and of icons, a tablet, and a phone. */
const widths = [1280, 820, 768, 390];

/**
 * What is wrong with the shown view in the light theme, in the dark one and in windows of several widths: violations of
 * accessibility, and the faults of {@link layoutFaults}. The page then has its former size again.
 */
export async function viewFaults(page: Page): Promise<string[]> {
  const faults = await violationsInBothThemes(page);
  const before = page.viewportSize() ?? { width: 1280, height: 800 };
  for (const width of widths) {
    await page.setViewportSize({ width, height: before.height });
    faults.push(...(await layoutFaults(page)));
  }
  await page.setViewportSize(before);
  return faults;
}

/**
 * What does not fit into the window as it is, once the page has drawn itself for its size: a page or a list that
 * scrolls sideways, content that is wider than its box, and a text that is cut without a `title` that has it whole.
 */
export async function layoutFaults(page: Page): Promise<string[]> {
  await drawn(page);
  return await page.evaluate(() => {
    const overhang = ({ scrollWidth, clientWidth }: Element) => scrollWidth - clientWidth;
    const isSeen = (box: Element) =>
      box.clientWidth > 1 &&
      box.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
      getComputedStyle(box).clipPath === "none";
    const describe = (box: Element, fault: string) =>
      `${innerWidth} px: ${box.localName} "${(box.getAttribute("aria-label") ?? box.textContent ?? "").trim().slice(0, 40)}" ${fault}`;
    const boxes = [...document.querySelectorAll("main *, nav *, [role=dialog] *")];
    const faults = boxes.flatMap((box) => {
      if (overhang(box) <= 1 || !isSeen(box)) return [];
      const { overflowX, textOverflow, display } = getComputedStyle(box);
      if (overflowX === "visible") {
        const isFree = display === "inline" || box.closest(".mantine-ScrollArea-root, svg") !== null;
        return isFree ? [] : describe(box, `overflows by ${overhang(box)} px`);
      }
      if (textOverflow === "ellipsis") {
        const isWhole = box.closest("[title]") !== null || box.querySelector("[title]") !== null;
        return isWhole || box instanceof HTMLInputElement ? [] : describe(box, "is cut without a title");
      }
      const isList = box.querySelector(":scope > table") !== null;
      return isList && overflowX !== "hidden" ? describe(box, `scrolls by ${overhang(box)} px`) : [];
    });
    const { documentElement: page } = document;
    if (overhang(page) > 0) faults.unshift(`${innerWidth} px: the page is ${overhang(page)} px too wide`);
    return faults;
  });
}

/** Waits until the page has drawn itself: widths are measured in a frame, and their effects drawn in the next ones. */
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(async () => {
    for (let frames = 0; frames < 4; frames++) await new Promise(requestAnimationFrame);
  });
}
