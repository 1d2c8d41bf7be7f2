import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { TestRun } from "./test-run.ts";

/** How a tool ended, with all that it printed. */
export interface ToolOutcome {
  readonly ok: boolean;
  readonly output: string;
  readonly seconds: number;
}

/** Options of {@link runTool}. */
export interface ToolOptions {
  /** What of the output is kept. Default: all of it. */
  readonly keep?: "all" | "stdout";
  /** Beside the environment of the run. */
  readonly with?: NodeJS.ProcessEnv;
}

const running = new Set<ChildProcess>();

/** Ends the tools that run. */
export function endTools(): void {
  for (const child of running) child.kill("SIGTERM");
}

/** Runs a tool of `node_modules/.bin`, or Node itself by its path, in the repository. Never rejects. */
export function runTool(
  { repository, env }: TestRun,
  command: string,
  args: readonly string[],
  { keep = "all", with: more = {} }: ToolOptions = {},
): Promise<ToolOutcome> {
  const startedAt = performance.now();
  const path = command === process.execPath ? command : join(repository, "node_modules", ".bin", command);
  return new Promise((resolve) => {
    const child = spawn(path, args, {
      cwd: repository,
      env: { ...env, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.add(child);
    const pieces: string[] = [];
    child.stdout.setEncoding("utf8").on("data", (text: string) => pieces.push(text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (keep === "all") pieces.push(text);
    });
    const end = (ok: boolean) => {
      running.delete(child);
      resolve({ ok, output: pieces.join(""), seconds: (performance.now() - startedAt) / 1_000 });
    };
    child.once("error", (error) => {
      pieces.push(error.message);
      end(false);
    });
    child.once("close", (code) => end(code === 0));
  });
}

/** Arguments for turbo, whose cache is used by inputs that turbo.json declares. */
export function turboArguments(task: string, { filters, all }: Pick<TestRun, "filters" | "all">): string[] {
  return ["run", task, ...filters, ...(all ? ["--force"] : []), "--env-mode=loose", "--no-color"];
}
