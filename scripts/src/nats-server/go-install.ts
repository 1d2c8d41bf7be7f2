import { spawn } from "node:child_process";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PINNED_VERSION } from "./supported-version.ts";

/** Longest that building nats-server may take, in milliseconds: the module download and about 40 s of compiling. */
const BUILD_MS = 10 * 60_000;

/**
 * Builds the pinned nats-server from its Go module, whose content Go itself checks against the public checksum
 * database, and writes it to `target`. Throws with the last lines of Go's own message. `signal` ends Go and all it has started.
 */
export async function goInstall(
  go: string,
  target: string,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<void> {
  const bin = await mkdtemp(join(tmpdir(), "devmesh-go-"));
  try {
    const module = `github.com/nats-io/nats-server/v2@v${PINNED_VERSION}`;
    await runGo(go, ["install", module], { ...env, GOBIN: bin, CGO_ENABLED: "0" }, signal);
    await copyFile(join(bin, "nats-server"), target);
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
    // A process group of its own, since Go builds with many processes and all of them must end.
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
