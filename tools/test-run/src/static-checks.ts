import type { TestRun } from "./test-run.ts";
import { runTool, turboArguments } from "./tool.ts";

/** The static checks, each counted as one test. With a filter only what can be narrowed to a package. */
export async function runStaticChecks(run: TestRun): Promise<void> {
  const checks: [string, string, string[]][] = [["type check", "turbo", turboArguments("check", run)]];
  if (run.filters.length === 0) {
    checks.push(
      ["lint", "biome", ["ci", "--colors=off", "."]],
      ["boundaries", "turbo", ["boundaries", "--no-color"]],
      ["unused code", "knip", ["--no-progress"]],
      ["generated files", process.execPath, ["tools/contract-check/src/generate.ts", "--check"]],
    );
  }
  for (const [name, command, args] of checks) {
    const { ok, output, seconds } = await runTool(run, command, args);
    run.print(`${ok ? "ok     " : "FAILED "} ${name} (${seconds.toFixed(1)} s)`);
    if (ok) run.pass();
    else {
      run.print(output.trimEnd());
      run.fail(name);
    }
  }
}
