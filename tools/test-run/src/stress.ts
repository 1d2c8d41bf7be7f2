import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

const rounds = 5;
const busyLoops = 2;

/**
 * Runs the command line `program` five times beside two busy loops, so that a suite that depends on timing fails. Stops
 * at the first run that fails and returns its exit code.
 */
export async function runUnderLoad(program: readonly string[]): Promise<number> {
  const loops = Array.from({ length: busyLoops }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
  process.once("exit", () => end(loops));
  for (let round = 1; round <= rounds; round++) {
    process.stdout.write(`Run ${round} of ${rounds} beside ${busyLoops} busy loops\n`);
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...program], {
      stdio: "inherit",
      // A run that takes results from the cache shows nothing.
      env: { ...process.env, TURBO_FORCE: "true" },
    });
    const [code] = await once(child, "exit");
    if (code !== 0) return code ?? 1;
  }
  return 0;
}

function end(children: readonly ChildProcess[]): void {
  for (const child of children) child.kill("SIGKILL");
}
