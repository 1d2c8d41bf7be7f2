import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The command line of a process, its arguments separated by blanks; null when there is no such process. */
export async function commandLineOf(pid: number): Promise<string | null> {
  if (!Number.isSafeInteger(pid) || pid < 1) return null;
  try {
    if (process.platform === "linux") {
      return (await readFile(`/proc/${pid}/cmdline`, "utf8")).replaceAll("\0", " ").trim() || null;
    }
    return (await run("ps", ["-ww", "-o", "command=", "-p", String(pid)])).stdout.trim() || null;
  } catch {
    return null;
  }
}

/**
 * Ends the process of this id if its command line holds all the texts, each up to the end of an argument. SIGTERM
 * first, SIGKILL after `graceMs`. Returns whether there was one to end.
 */
export async function endByCommandLine(
  pid: number,
  texts: readonly string[],
  graceMs: number,
): Promise<boolean> {
  const isIt = async () => {
    const commandLine = await commandLineOf(pid);
    return commandLine !== null && texts.every((text) => `${commandLine} `.includes(`${text} `));
  };
  if (!(await isIt())) return false;
  process.kill(pid, "SIGTERM");
  const killAt = performance.now() + graceMs;
  let killed = false;
  while (await isIt()) {
    if (!killed && performance.now() >= killAt) {
      process.kill(pid, "SIGKILL");
      killed = true;
    }
    await sleep(50);
  }
  return true;
}
