import { spawn } from "node:child_process";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Longest time to build a program, in milliseconds, the download of its modules included. */
const BUILD_MS = 10 * 60_000;

/** A program of a Go module. */
export interface GoProgram {
  /** As `go install` takes it, with its version: `example.com/module/cmd/program@v1.2.3`. */
  readonly module: string;
  /** The name that Go gives the binary. */
  readonly binary: string;
}

/**
 * Builds a program from its Go module, which Go checks against the public checksum database, and writes it to
 * `target`. Throws with the last lines of Go's message. `signal` ends Go and its children.
 */
export async function goInstall(
  go: string,
  program: GoProgram,
  target: string,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<void> {
  const bin = await mkdtemp(join(tmpdir(), "devmesh-go-"));
  try {
    await runGo(
      go,
      ["install", program.module],
      { ...env, GOBIN: bin, GOTMPDIR: bin, CGO_ENABLED: "0" },
      signal,
    );
    await copyFile(join(bin, program.binary), target);
  } finally {
    await rm(bin, { recursive: true, force: true });
  }
}

function runGo(
  go: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    // A new process group, to end all processes of the build together.
    const child = spawn(go, args, { env, stdio: ["ignore", "ignore", "pipe"], detached: true });
    const end = () => {
      if (child.pid !== undefined) killGroup(child.pid);
    };
    const bound = AbortSignal.any([AbortSignal.timeout(BUILD_MS), ...(signal ? [signal] : [])]);
    bound.addEventListener("abort", end, { once: true });
    let tail = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      tail = (tail + text).slice(-2_000);
    });
    child.once("error", (cause) => reject(new Error(`${go} could not be run`, { cause })));
    child.once("close", (code) => {
      bound.removeEventListener("abort", end);
      if (code === 0) return resolve();
      const lastLines = tail.trim().split("\n").slice(-3).join(" / ");
      reject(new Error(`go install failed: ${lastLines || `exit code ${code}`}`));
    });
  });
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // All of it has ended already.
  }
}
