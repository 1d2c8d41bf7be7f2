import { type EndToEndRun, endToEnd, runSuites, slow } from "./package-suites.ts";
import type { TestRun } from "./test-run.ts";

const reportAs = "@devmesh/e2e over MongoDB and three nats-servers";
const env = { DEVMESH_E2E_STORE: "mongodb", DEVMESH_E2E_BROKER: "cluster" };

/**
 * Files with their own mesh, that only run commands, use a browser or check the form of answers: the store and the
 * broker do not matter.
 */
const sameOverAll = ["conventions", "dashboard", "single-service"];

/** Of the files of `--all` those of whose promises the broker and the store are a part. */
const onCluster: readonly string[] = ["attack", "durability"];

/**
 * Runs the end-to-end suites a second time, over what a cluster runs on. `ran` tests ran the first time: without
 * MongoDB as many are skipped.
 */
export async function runClusterSuites(run: TestRun, { directory, ran }: EndToEndRun): Promise<void> {
  if (!run.env.MONGODB_URL) {
    run.report(reportAs, { passed: 0, failed: 0, skipped: ran, failures: [] });
    return;
  }
  const leftOut = [...slow.filter((name) => !onCluster.includes(name)), ...sameOverAll];
  await runSuites(run, { name: endToEnd, directory }, { workers: 2, leftOut, env, reportAs });
}
