import { closingLine, failureLine, sumOf, type TestCount, type TestOutcome } from "./test-results.ts";

/** One run of `npm test`, as its steps share it. */
export class TestRun {
  /** Root of the repository. */
  readonly repository: string;
  /** `--filter=PACKAGE` for turbo, as they were asked for; none for everything. */
  readonly filters: readonly string[];
  /** Adds what needs MongoDB, a cluster or containers, and takes nothing from turbo's cache. */
  readonly all: boolean;
  /** The environment of all tools and suites. Names what was found for them, such as nats-server. */
  readonly env: NodeJS.ProcessEnv;
  readonly #counts: TestCount[] = [];
  /** Printed again at the end: of a long run, often only the last lines are kept. */
  readonly #failures: string[] = [];

  constructor(options: Pick<TestRun, "repository" | "filters" | "all" | "env">) {
    this.repository = options.repository;
    this.filters = options.filters;
    this.all = options.all;
    this.env = options.env;
  }

  readonly print = (line: string): void => void process.stdout.write(`${line}\n`);

  /** Counts one step that is no suite as a test that passed. */
  pass(): void {
    this.#counts.push({ passed: 1, failed: 0, skipped: 0 });
  }

  /** Counts one step that is no suite as a test that failed. */
  fail(what: string): void {
    this.#counts.push({ passed: 0, failed: 1, skipped: 0 });
    this.#failures.push(`FAILED ${what}`);
  }

  /** Counts and prints the tests of one package, which took `seconds`. */
  report(packageName: string, outcome: TestOutcome, seconds = 0): void {
    const { passed, failed, skipped, failures } = outcome;
    const verdict = failed === 0 ? "ok     " : "FAILED ";
    const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
    this.print(`${verdict} ${packageName}: ${counts} (${seconds.toFixed(0)} s)`);
    this.#counts.push(outcome);
    this.#failures.push(...failures.map((failure) => failureLine(packageName, failure)));
  }

  /** Prints what failed, then the line with the counts. Returns whether nothing failed. */
  finish(): boolean {
    const total = sumOf(this.#counts);
    this.print("");
    for (const line of this.#failures) this.print(line);
    this.print(closingLine(total));
    return total.failed === 0;
  }
}

/** Message of an error. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
