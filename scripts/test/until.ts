/** Waits, ten seconds at most, for a condition that no event tells; the error of one that never comes says `told` too. */
export async function until(
  check: () => boolean | Promise<boolean>,
  told: () => string = () => "",
): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`not so in time ${told()}`);
}
