import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { buildDashboard } from "./dashboard-build.ts";
import { findChromium, withoutChromium } from "./find-chromium.ts";
import { type MongodbContainer, startMongodbContainer } from "./mongodb-container.ts";
import { findNatsServer } from "./nats-server/find-nats-server.ts";
import { childRegistry } from "./process/child-registry.ts";
import {
  closingLine,
  failureLine,
  readTestOutcome,
  sumOf,
  type TestCount,
  type TestOutcome,
} from "./test-results.ts";

const repository = resolve(import.meta.dirname, "../..");
const RESULT = join(".test-results", "jest.json");

/**
 * The end-to-end suite runs once more on what a cluster runs on, but for the tests that bring their own mesh or only try
 * commands, and those in a browser, which sees nothing of what the mesh runs on.
 */
const CLUSTER = {
  name: "@devmesh/e2e over MongoDB and three nats-servers",
  package: "@devmesh/e2e",
  result: join(".test-results", "cluster.json"),
  env: { DEVMESH_E2E_STORE: "mongodb", DEVMESH_E2E_BROKER: "cluster" },
  without: [
    "backup",
    "clients",
    "cluster",
    "dashboard-.*",
    "old-client",
    "readme",
    "replicas",
    "single-service",
  ],
};
const say = (line: string) => process.stdout.write(`${line}\n`);

/** How one step ended, with all that it printed. */
interface StepOutcome {
  readonly ok: boolean;
  readonly output: string;
  readonly seconds: number;
}

/** The members of turbo's `--dry=json` that tell which packages have a task. */
const DryRun = z.object({
  tasks: z.array(z.object({ package: z.string(), directory: z.string(), command: z.string() })),
});

const filters = filtersOf(process.argv.slice(2));
if (filters === null) {
  process.stderr.write("Usage: npm test [-- --filter=PACKAGE ...]\n");
  process.exit(2);
}
const env: NodeJS.ProcessEnv = {
  ...process.env,
  TURBO_TELEMETRY_DISABLED: "1",
  TURBO_NO_UPDATE_NOTIFIER: "1",
  // What a failing suite says is not to drown in what npm says about its script.
  npm_config_loglevel: "silent",
};
let running: ReturnType<typeof spawn> | null = null;
process.on("SIGTERM", () => {
  running?.kill("SIGTERM");
  process.exit(143);
});

const counts: TestCount[] = [];
/** Told once more at the end: of a long run, often only the last lines are kept. */
const failures: string[] = [];
let container: MongodbContainer | null = null;
if (await natsServerIsThere()) {
  await tellOfChromium();
  container = await startMongodb();
  counts.push(await dashboardIsBuilt());
  counts.push(await runChecks(filters));
  counts.push(await runPackageTests(filters));
} else {
  counts.push({ passed: 0, failed: 1, skipped: 0 });
}
await container?.stop();
const total = sumOf(counts);
say("");
for (const line of failures) say(line);
say(closingLine(total));
process.exit(total.failed === 0 ? 0 : 1);

function filtersOf(args: readonly string[]): string[] | null {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { filter: { type: "string", multiple: true } },
    });
    return (values.filter ?? []).map((name) => `--filter=${name}`);
  } catch {
    return null;
  }
}

/** Looks nats-server up once, as `npm start` does, and names it to all tests. */
async function natsServerIsThere(): Promise<boolean> {
  try {
    const found = await findNatsServer({ env: { ...process.env, NATS_URL: undefined }, say });
    if (found.kind !== "binary") return false;
    env.NATS_SERVER_BIN = found.path;
    // Tests start servers of their own; one that somebody runs is none of theirs.
    delete env.NATS_URL;
    say(`nats-server: ${found.path} (${found.from})`);
    return true;
  } catch (error) {
    failures.push(`FAILED nats-server: ${error instanceof Error ? error.message : error}`);
    return false;
  }
}

/** Says which browser the suites of the dashboard will drive; without one they are skipped. */
async function tellOfChromium(): Promise<void> {
  try {
    const found = await findChromium(env);
    say(`Chromium: ${found ?? `none (${withoutChromium}); the suites in a browser are skipped`}`);
  } catch (error) {
    failures.push(`FAILED Chromium: ${error instanceof Error ? error.message : error}`);
    counts.push({ passed: 0, failed: 1, skipped: 0 });
  }
}

/** Builds the dashboard once if need be, so that the meshes of the tests find it; counted as one test. */
async function dashboardIsBuilt(): Promise<TestCount> {
  const complaints: string[] = [];
  const complain = (line: string) => complaints.push(line);
  const build = { repository, children: childRegistry(), say, complain };
  await buildDashboard(build, new AbortController().signal);
  const ok = complaints.length === 0;
  say(`${ok ? "ok     " : "FAILED "} dashboard`);
  if (!ok) failures.push(`FAILED dashboard: ${complaints.join(" | ")}`);
  return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: 0 };
}

/** The server of `MONGODB_URL`, else one in a container for all suites; without both, those over MongoDB are skipped. */
async function startMongodb(): Promise<MongodbContainer | null> {
  if (env.MONGODB_URL) {
    say("MongoDB: that of MONGODB_URL");
    return null;
  }
  try {
    const started = await startMongodbContainer();
    if (started) env.MONGODB_URL = started.url;
    say(
      started
        ? "MongoDB: in a container"
        : "MongoDB: none (no MONGODB_URL, no Docker); its suites are skipped",
    );
    return started;
  } catch (error) {
    failures.push(`FAILED MongoDB in a container: ${error instanceof Error ? error.message : error}`);
    counts.push({ passed: 0, failed: 1, skipped: 0 });
    return null;
  }
}

/** The static checks, each counted as one test. With a filter only what can be narrowed to a package. */
async function runChecks(narrowed: readonly string[]): Promise<TestCount> {
  const checks: [string, string, string[]][] = [["type check", "turbo", turbo("check", narrowed)]];
  if (narrowed.length === 0) {
    checks.push(["lint", "biome", ["ci", "--colors=off", "."]]);
    checks.push(["boundaries", "turbo", ["boundaries", "--no-color"]]);
    checks.push(["unused code", "knip", ["--no-progress"]]);
    const generator = join("scripts", "generate.ts");
    if (existsSync(join(repository, generator))) {
      checks.push(["generated files", process.execPath, [generator, "--check"]]);
    }
  }
  const outcomes: TestCount[] = [];
  for (const [name, command, args] of checks) {
    const { ok, output, seconds } = await run(command, args);
    say(`${ok ? "ok     " : "FAILED "} ${name} (${seconds.toFixed(1)} s)`);
    if (!ok) {
      say(output.trimEnd());
      failures.push(`FAILED ${name}`);
    }
    outcomes.push({ passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: 0 });
  }
  return sumOf(outcomes);
}

/** The suites of all packages, two at a time. */
async function runPackageTests(narrowed: readonly string[]): Promise<TestCount> {
  const packages = await packagesWithTests(narrowed);
  if (packages === null) return { passed: 0, failed: 1, skipped: 0 };
  await Promise.all(packages.map(({ directory }) => clearResult(join(repository, directory, RESULT))));
  say(`        running the tests of ${packages.length === 1 ? "1 package" : `${packages.length} packages`}`);
  const args = [
    ...turbo("test", narrowed),
    "--continue",
    "--concurrency=2",
    "--output-logs=errors-only",
    "--",
    ...jestArguments(RESULT),
    "--passWithNoTests",
  ];
  const { ok, output } = await run("turbo", args);
  const outcomes: TestOutcome[] = [];
  for (const { name, directory } of packages) {
    const outcome = await readTestOutcome(join(repository, directory, RESULT));
    outcomes.push(outcome);
    tell(name, outcome);
    if (name === CLUSTER.package) outcomes.push(await runOnCluster(directory, outcome));
  }
  const total = sumOf(outcomes);
  if (!ok) say(output.trimEnd());
  if (ok || total.failed > 0) return total;
  failures.push(
    "FAILED a suite ended badly although each of its tests passed: an open handle, or a crash on the way out",
  );
  return { ...total, failed: 1 };
}

function tell(name: string, outcome: TestOutcome): void {
  const verdict = outcome.failed === 0 ? "ok     " : "FAILED ";
  say(`${verdict} ${name}: ${outcome.passed} passed, ${outcome.failed} failed, ${outcome.skipped} skipped`);
  failures.push(...outcome.failures.map((failure) => failureLine(name, failure)));
}

/** The end-to-end suite for the second time; without MongoDB as many tests are skipped as there were in the first. */
async function runOnCluster(directory: string, first: TestOutcome): Promise<TestOutcome> {
  const { name, package: filter, result, without } = CLUSTER;
  if (!env.MONGODB_URL) {
    const skipped = { passed: 0, failed: 0, skipped: first.passed + first.failed, failures: [] };
    tell(name, skipped);
    return skipped;
  }
  const file = join(repository, directory, result);
  await clearResult(file);
  const args = [
    ...turbo("test", [`--filter=${filter}`]),
    "--output-logs=errors-only",
    "--",
    ...jestArguments(result),
    "--maxWorkers=2",
    `--testPathIgnorePatterns=/(${without.join("|")}).test.ts$`,
  ];
  const { output } = await run("turbo", args, { with: CLUSTER.env });
  const outcome = await readTestOutcome(file);
  tell(name, outcome);
  if (outcome.failed > 0) say(output.trimEnd());
  return outcome;
}

/** A process that a test kept from ending must not hold up the run for ever: jest says so where the package is run alone. */
function jestArguments(result: string): string[] {
  return ["--json", `--outputFile=${result}`, "--forceExit"];
}

async function packagesWithTests(
  narrowed: readonly string[],
): Promise<{ name: string; directory: string }[] | null> {
  const { ok, output } = await run("turbo", [...turbo("test", narrowed), "--dry=json"], { keep: "stdout" });
  try {
    if (!ok) throw new Error("turbo failed");
    const { tasks } = DryRun.parse(JSON.parse(output));
    return tasks
      .filter(({ command }) => command !== "<NONEXISTENT>")
      .map(({ package: name, directory }) => ({ name, directory }));
  } catch (error) {
    say(output.trimEnd());
    failures.push(`FAILED which packages have tests: ${error instanceof Error ? error.message : error}`);
    return null;
  }
}

/** A result that an earlier run left must not be taken for this one's. */
async function clearResult(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await rm(file, { force: true });
}

/** Nothing is taken from turbo's cache: a check depends on more than its own package's files. */
function turbo(task: string, narrowed: readonly string[]): string[] {
  return ["run", task, ...narrowed, "--force", "--env-mode=loose", "--no-color"];
}

interface RunOptions {
  /** What of the output is kept. */
  readonly keep?: "all" | "stdout";
  /** Beside the environment of all steps. */
  readonly with?: NodeJS.ProcessEnv;
}

function run(
  command: string,
  args: readonly string[],
  { keep = "all", with: more = {} }: RunOptions = {},
): Promise<StepOutcome> {
  const startedAt = performance.now();
  const tool = command === process.execPath ? command : join(repository, "node_modules", ".bin", command);
  return new Promise((resolve) => {
    const child = spawn(tool, args, {
      cwd: repository,
      env: { ...env, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running = child;
    const pieces: string[] = [];
    child.stdout.setEncoding("utf8").on("data", (text: string) => pieces.push(text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (keep === "all") pieces.push(text);
    });
    const end = (ok: boolean) => {
      running = null;
      resolve({ ok, output: pieces.join(""), seconds: (performance.now() - startedAt) / 1_000 });
    };
    child.once("error", (error) => {
      pieces.push(error.message);
      end(false);
    });
    child.once("close", (code) => end(code === 0));
  });
}
