import type { TestRun } from "./test-run.ts";
import { runTool, turboArguments } from "./tool.ts";

/** The static checks, each counted as one test. With a filter only what can be narrowed to a package. */
export async function runStaticChecks(run: TestRun): Promise<void> {
  const { filters, say } = run;
  const checks: [string, string, string[]][] = [["type check", "turbo", turboArguments("check", filters)]];
  if (filters.length === 0) {
    checks.push(
      ["lint", "biome", ["ci", "--colors=off", "."]],
      ["boundaries", "turbo", ["boundaries", "--no-color"]],
      ["unused code", "knip", ["--no-progress"]],
      ["generated files", process.execPath, ["tools/contract-check/src/generate.ts", "--check"]],
    );
  }
  for (const [name, command, args] of checks) {
    const { ok, output, seconds } = await runTool(run, command, args);
    say(`${ok ? "ok     " : "FAILED "} ${name} (${seconds.toFixed(1)} s)`);
    if (ok) run.pass();
    else {
      say(output.trimEnd());
      run.fail(name);
    }
  }
}
