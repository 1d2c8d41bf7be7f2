import { readLines } from "@devmesh/service-kit/process/line-reader";
import type { BuildOptions } from "@devmesh/supervisor/run-mesh";

/** How a build ended. */
export interface BuildOutcome {
  readonly ok: boolean;
  /** Such as `ended (exit code 1)`. */
  readonly ended: string;
}

/** Lines of a failed build that are printed. */
const printedLines = 20;

/**
 * Runs a build program by Node in `cwd` and prints the end of its error output if it fails. Ends it when `signal`
 * aborts.
 */
export async function runBuild(
  { children, terminal }: BuildOptions,
  cwd: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<BuildOutcome> {
  const child = children.spawn(process.execPath, args, {
    cwd,
    // Any other value builds React for development, larger and slower.
    env: { ...process.env, NODE_ENV: "production", NO_COLOR: "1", FORCE_COLOR: "0" },
    stdio: ["ignore", "ignore", "pipe"],
    guarded: false,
  });
  const lines: string[] = [];
  if (child.process.stderr) readLines(child.process.stderr, (more) => lines.push(...more));
  const end = () => child.process.kill("SIGTERM");
  signal.addEventListener("abort", end, { once: true });
  const ended = await child.ended;
  signal.removeEventListener("abort", end);
  const ok = child.process.exitCode === 0;
  if (!ok && !signal.aborted) for (const line of lines.slice(-printedLines)) terminal.warn(line);
  return { ok, ended };
}
