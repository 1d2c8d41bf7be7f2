import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { readTestOutcome } from "./test-results.ts";
import { reasonOf, type TestRun } from "./test-run.ts";
import { runTool, turboArguments } from "./tool.ts";

/** Where jest leaves its result, below the package's folder. */
const resultFile = join(".test-results", "jest.json");

/** The members of turbo's `--dry=json` that tell which packages have a task. */
const DryRun = z.object({
  tasks: z.array(z.object({ package: z.string(), directory: z.string(), command: z.string() })),
});

/** The package whose suites take longest. */
export const endToEnd = "@devmesh/e2e";

/** A package with suites. */
interface Package {
  readonly name: string;
  /** Below the repository. */
  readonly directory: string;
}

/** Files of tests that only `--all` runs: they take minutes, or need MongoDB, a cluster or containers. */
const slow = ["broker-went-back", "cluster", "containers", "full-disk", "power-cut", "replicas"];

/** The end-to-end suites that ran. */
export interface EndToEndRun {
  /** Of the package, below the repository. */
  readonly directory: string;
  /** Tests that were not skipped. */
  readonly ran: number;
}

/**
 * Runs the suites of all packages. Those of `e2e` wait more than they compute: they run in two workers beside those of
 * one other package. Returns null if they were not among them.
 */
export async function runPackageSuites(run: TestRun): Promise<EndToEndRun | null> {
  const packages = await packagesWithTests(run);
  if (packages === null) return null;
  run.print(`        running the tests of ${packages.length} package${packages.length === 1 ? "" : "s"}`);
  if (!run.all) run.print(`        without --all these files are left out: ${slow.join(", ")}`);
  const long = packages.filter(({ name }) => name === endToEnd);
  const others = packages.filter(({ name }) => name !== endToEnd);
  const [ran] = await Promise.all([runSuites(run, long, 2), runSuites(run, others, 1)]);
  const [first] = long;
  return first === undefined ? null : { directory: first.directory, ran };
}

/** Runs the suites of one package after the other and returns how many tests were not skipped. */
async function runSuites(run: TestRun, packages: readonly Package[], workers: number): Promise<number> {
  if (packages.length === 0) return 0;
  const fileOf = ({ directory }: Package) => join(run.repository, directory, resultFile);
  await Promise.all(packages.map((one) => clearResult(fileOf(one))));
  const filters = packages.map(({ name }) => `--filter=${name}`);
  const { ok, output } = await runTool(run, "turbo", [
    ...turboArguments("test", { filters, all: run.all }),
    "--continue",
    "--concurrency=1",
    "--output-logs=errors-only",
    "--",
    ...jestArguments(resultFile, workers),
    "--passWithNoTests",
    ...(run.all ? [] : [`--testPathIgnorePatterns=/(${slow.join("|")})\\.test\\.ts$`]),
  ]);
  let failed = 0;
  let ran = 0;
  for (const one of packages) {
    const outcome = await readTestOutcome(fileOf(one));
    run.report(one.name, outcome);
    failed += outcome.failed;
    ran += outcome.passed + outcome.failed;
  }
  if (!ok) run.print(output.trimEnd());
  if (!ok && failed === 0)
    run.fail("a suite failed although each of its tests passed: an open handle, or a crash at the end");
  return ran;
}

/**
 * Jest's arguments. A process that a test kept from ending must not hold up the run for ever: jest says so where the
 * package is run alone.
 */
export function jestArguments(result: string, workers: number): string[] {
  return ["--json", `--outputFile=${result}`, "--forceExit", `--maxWorkers=${workers}`];
}

/** A result that an earlier run left must not be taken for this one's. */
export async function clearResult(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await rm(file, { force: true });
}

async function packagesWithTests(run: TestRun): Promise<Package[] | null> {
  const args = [...turboArguments("test", run), "--dry=json"];
  const { ok, output } = await runTool(run, "turbo", args, { keep: "stdout" });
  try {
    if (!ok) throw new Error("turbo failed");
    const { tasks } = DryRun.parse(JSON.parse(output));
    return tasks
      .filter(({ command }) => command !== "<NONEXISTENT>")
      .map(({ package: name, directory }) => ({ name, directory }));
  } catch (error) {
    run.print(output.trimEnd());
    run.fail(`which packages have tests: ${reasonOf(error)}`);
    return null;
  }
}
