import { findChromium, withoutChromium } from "@devmesh/testkit/find-chromium";
import { afterAll, beforeAll, describe } from "@jest/globals";
import type { Browser } from "playwright-core";
import { launchChromium } from "./launch-chromium.ts";

const executablePath = await findChromium();

/**
 * Tests in a browser of their own, which `suite` gets by calling its argument within a test or hook. Skipped by name
 * where there is no Chromium.
 */
export function describeInBrowser(title: string, suite: (browser: () => Browser) => void): void {
  if (executablePath === null) {
    describe.skip(`${title} (${withoutChromium})`, () => suite(absent));
    return;
  }
  describe(title, () => {
    let browser: Browser | undefined;
    beforeAll(async () => {
      browser = await launchChromium(executablePath);
    }, 60_000);
    // A suite's own hooks come after this one, so they run before it.
    afterAll(async () => await browser?.close(), 60_000);
    suite(() => browser ?? absent());
  });
}

function absent(): never {
  throw new Error("there is no browser here");
}
