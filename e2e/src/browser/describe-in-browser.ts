import { findChromium, withoutChromium } from "@devmesh/testkit/find-chromium";
import { afterAll, beforeAll, describe } from "@jest/globals";
import type { Browser } from "playwright-core";
import { launchChromium } from "./visit.ts";

const executablePath = await findChromium();

/** Tests with a browser; call the argument of `suite` within a test or hook. Skipped without Chromium. */
export function describeInBrowser(title: string, suite: (browser: () => Browser) => void): void {
  if (executablePath === null) {
    describe.skip(`${title} (${withoutChromium})`, () => suite(absent));
    return;
  }
  describe(title, () => {
    let browser: Browser | undefined;
    beforeAll(async () => {
      browser = await launchChromium(executablePath);
    }, 120_000);
    // A suite's own hooks are added later, so they run before this one.
    afterAll(async () => await browser?.close(), 60_000);
    suite(() => browser ?? absent());
  });
}

function absent(): never {
  throw new Error("there is no browser here");
}
