import { buildDashboard } from "@devmesh/launcher/dashboard-build";
import { findNatsServer } from "@devmesh/launcher/nats-server/find-nats-server";
import { childRegistry } from "@devmesh/launcher/process/child-registry";
import { findChromium, withoutChromium } from "@devmesh/testkit/find-chromium";
import { type MongodbContainer, startMongodbContainer } from "@devmesh/testkit/mongodb-container";
import { reasonOf, type TestRun } from "./test-run.ts";

/** Looks nats-server up once, as `npm start` does, and names it to all tests; false where there is none. */
export async function provideNatsServer(run: TestRun): Promise<boolean> {
  const { env, say } = run;
  try {
    const found = await findNatsServer({ env: { ...process.env, NATS_URL: undefined }, say });
    if (found.kind !== "binary") throw new Error("no binary was found");
    env.NATS_SERVER_BIN = found.path;
    // Tests start servers of their own; one that somebody runs is none of theirs.
    delete env.NATS_URL;
    say(`nats-server: ${found.path} (${found.from})`);
    return true;
  } catch (error) {
    run.fail(`nats-server: ${reasonOf(error)}`);
    return false;
  }
}

/** Says which browser the suites of the dashboard will drive; without one they are skipped. */
export async function tellOfChromium(run: TestRun): Promise<void> {
  try {
    const found = await findChromium(run.env);
    run.say(`Chromium: ${found ?? `none (${withoutChromium}); the suites in a browser are skipped`}`);
  } catch (error) {
    run.fail(`Chromium: ${reasonOf(error)}`);
  }
}

/**
 * The server of `MONGODB_URL`, else one in a container for all suites, to be stopped; without both, those over
 * MongoDB are skipped.
 */
export async function provideMongodb(run: TestRun): Promise<MongodbContainer | null> {
  const { env, say } = run;
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
    run.fail(`MongoDB in a container: ${reasonOf(error)}`);
    return null;
  }
}

/** Builds the dashboard once if need be, so that the meshes of the tests find it. */
export async function provideDashboard(run: TestRun): Promise<void> {
  const { repository, say } = run;
  const complaints: string[] = [];
  const complain = (line: string) => complaints.push(line);
  const build = { repository, children: childRegistry(), say, complain };
  await buildDashboard(build, new AbortController().signal);
  const ok = complaints.length === 0;
  say(`${ok ? "ok     " : "FAILED "} dashboard`);
  if (ok) run.pass();
  else run.fail(`dashboard: ${complaints.join(" | ")}`);
}
