import { test } from "@jest/globals";

/**
 * Defines tests that build on each other: behind one that failed the others fail at once, instead of each waiting for what
 * cannot come.
 */
export function testsInOrder(): (name: string, run: () => Promise<void> | void, timeoutMs?: number) => void {
  let failed: string | null = null;
  return (name, run, timeoutMs) =>
    test(
      name,
      async () => {
        if (failed !== null) throw new Error(`not tried, as it builds on what failed: ${failed}`);
        failed = name;
        await run();
        failed = null;
      },
      timeoutMs,
    );
}
