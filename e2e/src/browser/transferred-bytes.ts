import type { Page } from "playwright-core";

/**
 * Counts what a page loads from now on, headers included, as it came over the network, compressed. Answers what is
 * counted so far. The stream of notifications counts only once it ends.
 */
export async function transferredBytes(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  return () => bytes;
}
