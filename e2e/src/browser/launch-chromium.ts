import { type Browser, chromium } from "playwright-core";

/**
 * Starts the browser without a window; the caller closes it. It runs in its sandbox, except for root, whom Chromium
 * refuses one.
 */
export async function launchChromium(path: string): Promise<Browser> {
  return await chromium.launch({
    executablePath: path,
    chromiumSandbox: process.getuid?.() !== 0,
    // The shared memory that containers have is too small for it.
    args: ["--disable-dev-shm-usage"],
  });
}
