import { test } from "@jest/globals";

/**
 * Defines tests that depend on each other: after a failure the later ones fail at once. `describeState` is added to
 * the message of the failure.
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

/** Without a stack, so that the message of the failure stays visible. */
function notTried(failed: string): Error {
  const error = new Error(`not tried, as it builds on what failed: ${failed}`);
  error.stack = error.message;
  return error;
}
