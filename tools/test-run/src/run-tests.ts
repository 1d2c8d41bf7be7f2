import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { runClusterSuites } from "./cluster-suites.ts";
import { runPackageSuites } from "./package-suites.ts";
import { provideDashboard, provideMongodb, provideNatsServer, tellOfChromium } from "./requirements.ts";
import { runStaticChecks } from "./static-checks.ts";
import { TestRun } from "./test-run.ts";
import { endTool } from "./tool.ts";

const filters = filtersOf(process.argv.slice(2));
if (filters === null) {
  process.stderr.write("Usage: npm test [-- --filter=PACKAGE ...]\n");
  process.exit(2);
}
process.on("SIGTERM", () => {
  endTool();
  process.exit(143);
});

const run = new TestRun(resolve(import.meta.dirname, "../../.."), filters, {
  ...process.env,
  TURBO_TELEMETRY_DISABLED: "1",
  TURBO_NO_UPDATE_NOTIFIER: "1",
  // What a failing suite says is not to drown in what npm says about its script.
  npm_config_loglevel: "silent",
});
if (await provideNatsServer(run)) {
  await tellOfChromium(run);
  const mongodb = await provideMongodb(run);
  await provideDashboard(run);
  await runStaticChecks(run);
  await runClusterSuites(run, await runPackageSuites(run));
  await mongodb?.stop();
}
process.exit(run.finish() ? 0 : 1);

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
