import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { runClusterSuites } from "./cluster-suites.ts";
import { runPackageSuites } from "./package-suites.ts";
import { buildOnce, findBrowser, provideMongodb, provideNatsServer } from "./requirements.ts";
import { runStaticChecks } from "./static-checks.ts";
import { runUnderLoad } from "./stress.ts";
import { TestRun } from "./test-run.ts";
import { endTools } from "./tool.ts";

const usage = `Usage: npm test [-- [--all] [--filter=PACKAGE]...]

  --all     adds MongoDB, the cluster of three nats-servers, containers and power cuts; takes nothing from the cache
  --filter  the suites of these packages only
  --stress  five runs beside two busy loops (npm run test:stress)`;

const repository = resolve(import.meta.dirname, "../../..");
const options = optionsOf(process.argv.slice(2));
if (options === null) {
  process.stderr.write(`${usage}\n`);
  process.exit(2);
}
process.on("SIGTERM", () => {
  endTools();
  process.exit(143);
});
if (options.stress)
  process.exit(await runUnderLoad(process.argv.slice(1).filter((arg) => arg !== "--stress")));

const run = new TestRun({
  repository,
  filters: options.filters,
  all: options.all,
  env: {
    ...process.env,
    TURBO_TELEMETRY_DISABLED: "1",
    TURBO_NO_UPDATE_NOTIFIER: "1",
    // npm's own messages about a failed script hide those of the suite.
    npm_config_loglevel: "silent",
  },
});
// Without nats-server, which may have to be built, nothing but these steps can run.
const checks = runStaticChecks(run);
const [found, mongodb] = await Promise.all([
  provideNatsServer(run),
  provideMongodb(run),
  findBrowser(run),
  buildOnce(run),
]);
if (found) {
  await runPackageSuites(run, checks, async (endToEnd) => {
    if (run.all) await runClusterSuites(run, endToEnd);
  });
}
await checks;
await mongodb?.stop();
process.exit(run.finish() ? 0 : 1);

function optionsOf(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        all: { type: "boolean", default: false },
        stress: { type: "boolean", default: false },
        filter: { type: "string", multiple: true },
      },
    });
    const filters = (values.filter ?? []).map((name) => `--filter=${name}`);
    return { all: values.all, stress: values.stress, filters };
  } catch {
    return null;
  }
}
