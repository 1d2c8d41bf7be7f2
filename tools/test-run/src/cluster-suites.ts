import { join } from "node:path";
import { clearResult, type EndToEndRun, endToEnd, jestArguments } from "./package-suites.ts";
import { readTestOutcome } from "./test-results.ts";
import type { TestRun } from "./test-run.ts";
import { runTool, turboArguments } from "./tool.ts";

const suiteName = "@devmesh/e2e over MongoDB and three nats-servers";
const resultFile = join(".test-results", "cluster.json");
const clusterEnvironment = { DEVMESH_E2E_STORE: "mongodb", DEVMESH_E2E_BROKER: "cluster" };

/**
 * What brings its own mesh or only tries commands, and what runs in a browser, which sees nothing of what the mesh
 * runs on.
 */
const leftOut = [
  "backup",
  "broker-went-back",
  "clients",
  "cluster",
  "dashboard-.*",
  "full-disk",
  "old-client",
  "power-cut",
  "readme",
  "replicas",
  "single-service",
];

/**
 * Runs the end-to-end suites a second time, over what a cluster runs on. `ran` tests ran the first time: without
 * MongoDB as many are skipped.
 */
export async function runClusterSuites(run: TestRun, { directory, ran }: EndToEndRun): Promise<void> {
  if (!run.env.MONGODB_URL) {
    run.report(suiteName, { passed: 0, failed: 0, skipped: ran, failures: [] });
    return;
  }
  const file = join(run.repository, directory, resultFile);
  await clearResult(file);
  const args = [
    ...turboArguments("test", { all: true, filters: [`--filter=${endToEnd}`] }),
    "--output-logs=errors-only",
    "--",
    ...jestArguments(resultFile, 2),
    `--testPathIgnorePatterns=/(${leftOut.join("|")}).test.ts$`,
  ];
  const { output } = await runTool(run, "turbo", args, { with: clusterEnvironment });
  const outcome = await readTestOutcome(file);
  run.report(suiteName, outcome);
  if (outcome.failed > 0) run.print(output.trimEnd());
}
