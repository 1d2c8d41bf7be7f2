import { closingLine, failureLine, sumOf, type TestCount, type TestOutcome } from "./test-results.ts";

/** One run of `npm test`, as its steps share it. */
export class TestRun {
  /** Root of the repository. */
  readonly repository: string;
  /** `--filter=PACKAGE` for turbo, as they were asked for; none for everything. */
  readonly filters: readonly string[];
  /** The environment of all tools and suites. What was found for them, such as nats-server, is named in it. */
  readonly env: NodeJS.ProcessEnv;
  readonly #counts: TestCount[] = [];
  /** Told once more at the end: of a long run, often only the last lines are kept. */
  readonly #failures: string[] = [];

  constructor(repository: string, filters: readonly string[], env: NodeJS.ProcessEnv) {
    this.repository = repository;
    this.filters = filters;
    this.env = env;
  }

  readonly say = (line: string): void => void process.stdout.write(`${line}\n`);

  /** Counts one step that is no suite as a test that passed. */
  pass(): void {
    this.#counts.push({ passed: 1, failed: 0, skipped: 0 });
  }

  /** Counts one step that is no suite as a test that failed. */
  fail(what: string): void {
    this.#counts.push({ passed: 0, failed: 1, skipped: 0 });
    this.#failures.push(`FAILED ${what}`);
  }

  /** Counts the tests of one package. */
  tell(packageName: string, outcome: TestOutcome): void {
    const { passed, failed, skipped, failures } = outcome;
    const verdict = failed === 0 ? "ok     " : "FAILED ";
    this.say(`${verdict} ${packageName}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
    this.#counts.push(outcome);
    this.#failures.push(...failures.map((failure) => failureLine(packageName, failure)));
  }

  /** Tells what failed, and closes with the line that counts. Answers whether all is well. */
  finish(): boolean {
    const total = sumOf(this.#counts);
    this.say("");
    for (const line of this.#failures) this.say(line);
    this.say(closingLine(total));
    return total.failed === 0;
  }
}

/** What an error says, for a sentence. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
