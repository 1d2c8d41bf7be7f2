import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { readTestOutcome } from "./test-results.ts";
import { reasonOf, type TestRun } from "./test-run.ts";
import { runTool, turboArguments } from "./tool.ts";

/** Where jest leaves its result, below the package's folder. */
const resultFile = join(".test-results", "jest.json");

/** The members of turbo's `--dry=json` that name the packages with a task. */
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
export const slow = ["broker-went-back", "cluster", "containers", "full-disk", "power-cut", "replicas"];

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
  const leftOut = run.all ? [] : slow;
  const [ran] = await Promise.all([
    runSuites(run, long, { workers: 2, leftOut }),
    runSuites(run, others, { workers: 1, leftOut }),
  ]);
  const [first] = long;
  return first === undefined ? null : { directory: first.directory, ran };
}

interface SuiteOptions {
  /** Of jest, for each package. */
  readonly workers: number;
  /** Files of tests that are not run, by regular expressions of their names. */
  readonly leftOut: readonly string[];
  /** Beside the environment of the run. */
  readonly env?: NodeJS.ProcessEnv;
  /** Where the counts are reported; default: the name of the package. */
  readonly reportAs?: string;
}

/** Runs the suites of one package after the other and returns how many tests were not skipped. */
export async function runSuites(
  run: TestRun,
  packages: readonly Package[],
  { workers, leftOut, env = {}, reportAs }: SuiteOptions,
): Promise<number> {
  if (packages.length === 0) return 0;
  const fileOf = ({ directory }: Package) => join(run.repository, directory, resultFile);
  await Promise.all(packages.map((one) => clearResult(fileOf(one))));
  const args = [
    ...turboArguments("test", { filters: packages.map(({ name }) => `--filter=${name}`), all: run.all }),
    "--continue",
    "--concurrency=1",
    "--output-logs=errors-only",
    "--",
    "--json",
    `--outputFile=${resultFile}`,
    // jest reports open handles where the package is run alone; here they must not stop the run.
    "--forceExit",
    `--maxWorkers=${workers}`,
    "--passWithNoTests",
    ...(leftOut.length === 0 ? [] : [`--testPathIgnorePatterns=/(${leftOut.join("|")})\\.test\\.ts$`]),
  ];
  const { ok, output } = await runTool(run, "turbo", args, { with: env });
  let failed = 0;
  let ran = 0;
  for (const one of packages) {
    const outcome = await readTestOutcome(fileOf(one));
    run.report(reportAs ?? one.name, outcome);
    failed += outcome.failed;
    ran += outcome.passed + outcome.failed;
  }
  if (!ok) run.print(output.trimEnd());
  if (!ok && failed === 0)
    run.fail("a suite failed although each of its tests passed: an open handle, or a crash at the end");
  return ran;
}

/** A result that an earlier run left must not be taken for this one's. */
async function clearResult(file: string): Promise<void> {
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
