import { mkdir, rm } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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

/** The packages that take longest beside it, the longest first: started late, one would run alone at the end. */
const longest = [
  "launcher",
  "rpc-bridge",
  "jobs",
  "web",
  "service-kit",
  "gateway",
  "device-broker",
  "data",
  "webhooks",
  "alerts",
  "keys",
  "devices",
  // Containers change the interfaces of the network, at which a browser of `e2e` drops its requests.
  "k8s",
].map((name) => `@devmesh/${name}`);

/** A package with suites. */
interface Package {
  readonly name: string;
  /** Below the repository. */
  readonly directory: string;
}

/**
 * Files of tests that only `--all` runs: they take minutes, need MongoDB, a cluster or containers, kill parts again and
 * again, check a copy of the whole repository, or compile in other languages. `attack` includes all dashboard views.
 */
export const slow = [
  "attack",
  "backup",
  "broker-went-back",
  "clearing",
  "cluster",
  "containers",
  "dashboard-pages",
  "durability",
  "full-disk",
  "generated-clients",
  "interrupted-updates",
  "killed-parts",
  "kills",
  "manifests",
  "mesh-listeners",
  "mesh-tls",
  "new-service",
  "old-client",
  "overlay",
  "power-cut",
  "replicas",
  "traffic",
];

/** The end-to-end suites that ran. */
export interface EndToEndRun {
  /** Of the package, below the repository. */
  readonly directory: string;
  /** Tests that were not skipped. */
  readonly ran: number;
}

/** Jest workers of `e2e`, and packages that run beside it: a worker uses a third of a core. */
const endToEndWorkers = 3;
const packagesBeside = 3;

/** Load of the last minute, for each core, beyond which no package starts beside another: requests would time out. */
const mostLoad = 4;

/** Jest workers of a package beside `e2e`, by default one: more for suites that mostly wait for the service's times. */
const workersOf: Readonly<Record<string, number>> = {
  "@devmesh/jobs": 3,
  "@devmesh/launcher": 2,
  "@devmesh/k8s": 2,
};

/**
 * Runs the suites of all packages and reports each package as it ends. Suites wait more than they compute; one runs
 * beside `e2e` until `checks`, which compute, has resolved. `afterwards` follows `e2e`, if that is among them, beside
 * the packages that are left.
 */
export async function runPackageSuites(
  run: TestRun,
  checks: Promise<void>,
  afterwards: (ran: EndToEndRun) => Promise<void>,
): Promise<void> {
  const packages = await packagesWithTests(run);
  if (packages === null) return await checks;
  run.print(`        running the tests of ${packages.length} package${packages.length === 1 ? "" : "s"}`);
  if (!run.all) run.print(`        without --all these files are left out: ${slow.join(", ")}`);
  const leftOut = run.all ? [] : slow;
  const long = packages.find(({ name }) => name === endToEnd);
  const rank = ({ name }: Package) => longest.indexOf(name) + 1 || longest.length + 1;
  const queue = packages.filter((one) => one !== long).sort((one, other) => rank(one) - rank(other));
  let running = 0;
  const runNext = async (next: Package, workers: number) => {
    running++;
    const ran = await runSuites(run, next, { workers, leftOut });
    running--;
    return ran;
  };
  const isBusy = () => (loadavg()[0] ?? 0) > mostLoad * availableParallelism();
  const take = async () => {
    while (queue.length > 0 && running > 0 && isBusy()) await sleep(5_000);
    return queue.shift();
  };
  const work = async () => {
    for (let next = await take(); next !== undefined; next = await take()) {
      // The check of a client makes the types that its suites make, too.
      if (next.directory.startsWith("clients/")) await checks;
      await runNext(next, workersOf[next.name] ?? 1);
    }
  };
  const first = async () => {
    if (long !== undefined) {
      const ran = await runNext(long, endToEndWorkers);
      await afterwards({ directory: long.directory, ran });
    }
    await Promise.all(Array.from({ length: endToEndWorkers }, work));
  };
  const afterChecks = Array.from({ length: packagesBeside - 1 }, () => checks.then(work));
  await Promise.all([first(), work(), ...afterChecks]);
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

/** Runs the suites of a package and returns how many tests were not skipped. */
export async function runSuites(
  run: TestRun,
  { name, directory }: Package,
  { workers, leftOut, env = {}, reportAs = name }: SuiteOptions,
): Promise<number> {
  const file = join(run.repository, directory, resultFile);
  // A result that an earlier run left must not be taken for this one's.
  await rm(file, { force: true });
  const args = [
    ...turboArguments("test", { filters: [`--filter=${name}`], all: run.all }),
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
  await mkdir(dirname(file), { recursive: true });
  const { ok, output, seconds } = await runTool(run, "turbo", args, { with: env });
  const outcome = await readTestOutcome(file);
  run.report(reportAs, outcome, seconds);
  if (!ok) run.print(output.trimEnd());
  if (!ok && outcome.failed === 0)
    run.fail(`${reportAs}: failed although each of its tests passed: an open handle, or a crash at the end`);
  return outcome.passed + outcome.failed;
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
