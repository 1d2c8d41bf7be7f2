import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { z } from "zod";

/** The members of jest's `--json` that count, and those that show what failed. */
const JestResult = z.object({
  numPassedTests: z.int(),
  numFailedTests: z.int(),
  numPendingTests: z.int(),
  numTodoTests: z.int(),
  /** Files that could not even be loaded; their tests are in none of the numbers above. */
  numRuntimeErrorTestSuites: z.int(),
  testResults: z.array(
    z.object({
      /** Path of the file. */
      name: z.string(),
      status: z.string(),
      /** Why the file could not be loaded; with failed tests, all that failed in it, drawn for a terminal. */
      message: z.string(),
      assertionResults: z.array(
        z.object({
          fullName: z.string(),
          status: z.string(),
          failureMessages: z.array(z.string()),
        }),
      ),
    }),
  ),
});

/** How many tests did what. */
export interface TestCount {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A test that failed, or a file of tests that could not be loaded. */
export interface FailedTest {
  /** Its title after those of its groups; of a file, its name. */
  readonly name: string;
  /** As jest gives it: several lines with the stack after them, and colours maybe. */
  readonly message: string;
}

/** What the tests of one package did. */
export interface TestOutcome extends TestCount {
  /** Each test that failed, and each file that could not be loaded. */
  readonly failures: readonly FailedTest[];
}

/**
 * Reads jest's result file; one that is missing or unreadable means that jest crashed, which counts as one failed
 * test.
 */
export async function readTestOutcome(file: string): Promise<TestOutcome> {
  try {
    const result = JestResult.parse(JSON.parse(await readFile(file, "utf8")));
    return {
      passed: result.numPassedTests,
      failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
      skipped: result.numPendingTests + result.numTodoTests,
      failures: result.testResults.flatMap(failuresOf),
    };
  } catch {
    const message = "jest left no result that can be read";
    return { passed: 0, failed: 1, skipped: 0, failures: [{ name: "all tests", message }] };
  }
}

function failuresOf(file: z.infer<typeof JestResult>["testResults"][number]): FailedTest[] {
  const failed = file.assertionResults.filter(({ status }) => status === "failed");
  if (failed.length === 0 && file.status === "failed")
    return [{ name: basename(file.name), message: file.message }];
  return failed.map(({ fullName, failureMessages }) => ({
    name: fullName,
    message: failureMessages.join("\n"),
  }));
}

/** The most characters of a message that are repeated at the end of a run. */
const messageLength = 600;

/**
 * The line on a failed test for the end of a run, where it is found without searching: what failed, and why, joined
 * into one line without colours and without the stack.
 */
export function failureLine(packageName: string, { name, message }: FailedTest): string {
  const lines = stripVTControlCharacters(message)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const stack = lines.findIndex((line) => line.startsWith("at "));
  const why = (stack > 0 ? lines.slice(0, stack) : lines).join(" | ");
  const told = why.length > messageLength ? `${why.slice(0, messageLength)}…` : why;
  return `FAILED ${packageName} › ${name.replaceAll(/\s+/g, " ")}: ${told}`;
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
