import { test } from "@jest/globals";

/**
 * Defines tests that build on each other: behind one that failed the others fail at once, instead of each waiting for
 * what cannot come. `describeState` tells, for the message of the one that failed, how things stood then.
 */
export function testsInOrder(
  describeState: () => Promise<string>,
): (name: string, run: () => Promise<void> | void, timeoutMs?: number) => void {
  let failed: string | null = null;
  return (name, run, timeoutMs) =>
    test(
      name,
      async () => {
        if (failed !== null) throw notTried(failed);
        try {
          await run();
        } catch (error) {
          failed = name;
          const state = await describeState().catch(() => "not known");
          const message = error instanceof Error ? error.message : String(error);
          throw new Error(`${message}\n${state}`, { cause: error });
        }
      },
      timeoutMs,
    );
}

/** Without a stack: those of many tests would bury the message of the one that failed. */
function notTried(failed: string): Error {
  const error = new Error(`not tried, as it builds on what failed: ${failed}`);
  error.stack = error.message;
  return error;
}
