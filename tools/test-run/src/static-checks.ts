import type { TestRun } from "./test-run.ts";
import { runTool, turboArguments } from "./tool.ts";

/**
 * One program for each set of compiler options: each source file is checked once instead of once for each package that
 * imports it.
 */
const programs = ["tsconfig.json", "tsconfig.browser.json", "web/tsconfig.json"];

/** The static checks, each counted as one test. With a filter only the type check, of those packages. */
export async function runStaticChecks(run: TestRun): Promise<void> {
  const checks: [string, string, string[]][] =
    run.filters.length > 0
      ? [["type check", "turbo", turboArguments("check", run)]]
      : [
          ...programs.map((program): [string, string, string[]] => [
            `types of ${program}`,
            "tsc",
            ["-p", program],
          ]),
          // Their checks make the types that they need.
          [
            "types of the clients",
            "turbo",
            turboArguments("check", {
              ...run,
              filters: ["--filter=@devmesh/client", "--filter=@devmesh/client-python"],
            }),
          ],
          ["lint", "biome", ["ci", "--colors=off", "."]],
          ["boundaries", "turbo", ["boundaries", "--no-color"]],
          ["unused code", "knip", ["--no-progress"]],
          ["generated files", process.execPath, ["tools/contract-check/src/generate.ts", "--check"]],
        ];
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
