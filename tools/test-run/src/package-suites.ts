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

/** A package with suites. */
export interface TestedPackage {
  readonly name: string;
  /** Below the repository. */
  readonly directory: string;
  /** Tests that ran, and were not skipped. */
  readonly ran: number;
}

/** Files of tests that only `--all` runs: they take minutes, or need MongoDB, a cluster or containers. */
const slow = ["broker-went-back", "cluster", "containers", "full-disk", "power-cut", "replicas"];

/** Runs the suites of all packages and returns which packages have some. */
export async function runPackageSuites(run: TestRun): Promise<readonly TestedPackage[]> {
  const { repository, print } = run;
  const packages = await packagesWithTests(run);
  if (packages === null) return [];
  await Promise.all(packages.map(({ directory }) => clearResult(join(repository, directory, resultFile))));
  print(
    `        running the tests of ${packages.length === 1 ? "1 package" : `${packages.length} packages`}`,
  );
  if (!run.all) print(`        without --all these files are left out: ${slow.join(", ")}`);
  const { ok, output } = await runTool(run, "turbo", [
    ...turboArguments("test", run),
    "--continue",
    "--concurrency=3",
    "--output-logs=errors-only",
    "--",
    ...jestArguments(resultFile),
    "--passWithNoTests",
    ...(run.all ? [] : [`--testPathIgnorePatterns=/(${slow.join("|")})\\.test\\.ts$`]),
  ]);
  const tested: TestedPackage[] = [];
  let failed = 0;
  for (const { name, directory } of packages) {
    const outcome = await readTestOutcome(join(repository, directory, resultFile));
    run.report(name, outcome);
    failed += outcome.failed;
    tested.push({ name, directory, ran: outcome.passed + outcome.failed });
  }
  if (!ok) print(output.trimEnd());
  if (!ok && failed === 0)
    run.fail("a suite failed although each of its tests passed: an open handle, or a crash at the end");
  return tested;
}

/**
 * Jest's arguments. A process that a test kept from ending must not hold up the run for ever: jest says so where the
 * package is run alone.
 */
export function jestArguments(result: string): string[] {
  return ["--json", `--outputFile=${result}`, "--forceExit"];
}

/** A result that an earlier run left must not be taken for this one's. */
export async function clearResult(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await rm(file, { force: true });
}

async function packagesWithTests(run: TestRun): Promise<{ name: string; directory: string }[] | null> {
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
