import { buildDashboard } from "@devmesh/launcher/build/dashboard-build";
import { bundleServices } from "@devmesh/launcher/build/service-bundles";
import { findNatsServer } from "@devmesh/launcher/nats-server/find-nats-server";
import { childRegistry } from "@devmesh/supervisor/process/child-registry";
import { findChromium, withoutChromium } from "@devmesh/testkit/find-chromium";
import { type MongodbContainer, startMongodbContainer } from "@devmesh/testkit/mongodb-container";
import { reasonOf, type TestRun } from "./test-run.ts";

/** Looks nats-server up once, as `npm start` does, and names it to all tests; false where there is none. */
export async function provideNatsServer(run: TestRun): Promise<boolean> {
  const { env, print } = run;
  try {
    const found = await findNatsServer({ env: process.env, log: print });
    env.NATS_SERVER_BIN = found.path;
    // Tests start their own servers and must not use an external one.
    delete env.NATS_URL;
    print(`nats-server: ${found.path} (${found.from})`);
    return true;
  } catch (error) {
    run.fail(`nats-server: ${reasonOf(error)}`);
    return false;
  }
}

/** Prints which browser the suites of the dashboard use; without one they are skipped. */
export async function findBrowser(run: TestRun): Promise<void> {
  try {
    const found = await findChromium(run.env);
    run.print(`Chromium: ${found ?? `none (${withoutChromium}); the suites in a browser are skipped`}`);
  } catch (error) {
    run.fail(`Chromium: ${reasonOf(error)}`);
  }
}

/**
 * The server of `MONGODB_URL`, else one in a container for all suites, to be stopped. Without both, and without
 * `--all`, the suites over MongoDB are skipped.
 */
export async function provideMongodb(run: TestRun): Promise<MongodbContainer | null> {
  const { env, print } = run;
  if (!run.all) {
    delete env.MONGODB_URL;
    print("MongoDB: its suites are skipped without --all");
    return null;
  }
  if (env.MONGODB_URL) {
    print("MongoDB: the server of MONGODB_URL");
    return null;
  }
  try {
    const started = await startMongodbContainer();
    if (started) env.MONGODB_URL = started.url;
    print(
      started
        ? "MongoDB: in a container"
        : "MongoDB: none (no MONGODB_URL, no Docker); its suites are skipped",
    );
    return started;
  } catch (error) {
    run.fail(`MongoDB in a container: ${reasonOf(error)}`);
    return null;
  }
}

/** Builds the dashboard and bundles the services if they are stale, so that the meshes of the tests find them. */
export async function buildOnce(run: TestRun): Promise<void> {
  const { repository, print } = run;
  const failures: string[] = [];
  const terminal = { log: print, warn: (line: string) => void failures.push(line) };
  const build = { repository, children: childRegistry(), terminal };
  const { signal } = new AbortController();
  const [bundles] = await Promise.all([bundleServices(build, signal), buildDashboard(build, signal)]);
  run.env.SERVICE_BUNDLES = bundles ?? undefined;
  const ok = failures.length === 0;
  print(`${ok ? "ok     " : "FAILED "} dashboard and bundles`);
  if (ok) run.pass();
  else run.fail(`dashboard and bundles: ${failures.join(" | ")}`);
}
