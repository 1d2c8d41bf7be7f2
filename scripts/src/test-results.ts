import { readFile } from "node:fs/promises";
import { z } from "zod";

/** The members of jest's `--json` that count. */
const JestResult = z.object({
  numPassedTests: z.int(),
  numFailedTests: z.int(),
  numPendingTests: z.int(),
  numTodoTests: z.int(),
  /** Files that could not even be loaded; their tests stand in none of the numbers above. */
  numRuntimeErrorTestSuites: z.int(),
});

/** How many tests did what. */
export interface TestCount {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Reads jest's result file; one that is missing or unreadable means that jest crashed, which counts as one failed test. */
export async function readTestCount(file: string): Promise<TestCount> {
  try {
    const result = JestResult.parse(JSON.parse(await readFile(file, "utf8")));
    return {
      passed: result.numPassedTests,
      failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
      skipped: result.numPendingTests + result.numTodoTests,
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

/** Adds counts up. */
export function sumOf(counts: readonly TestCount[]): TestCount {
  return counts.reduce(
    (sum, { passed, failed, skipped }) => ({
      passed: sum.passed + passed,
      failed: sum.failed + failed,
      skipped: sum.skipped + skipped,
    }),
    { passed: 0, failed: 0, skipped: 0 },
  );
}

/** The line with which every test run closes; others' scripts read it. */
export function closingLine({ passed, failed, skipped }: TestCount): string {
  return `Tests: ${passed} passed, ${failed} failed, ${skipped} skipped`;
}
