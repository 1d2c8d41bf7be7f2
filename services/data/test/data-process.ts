import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { LauncherMessage } from "@devmesh/service-kit/run-service";

/** The data service in a process of its own, as the launcher starts it. */
export interface DataProcess extends AsyncDisposable {
  /** Where `/readyz` and `/metrics` are. */
  readonly ops: string;
  /** Ends the process by a signal and waits for its end; resolves with its exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/**
 * Starts the service and waits until it says that it is ready. Rejects with what it printed when it does not come up.
 */
export async function startDataProcess(environment: Readonly<Record<string, string>>): Promise<DataProcess> {
  const main = join(import.meta.dirname, "../src/main.ts");
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main], {
    env: { PATH: process.env.PATH, LOG_LEVEL: "warn", ...environment },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const ops = await new Promise<string>((resolve, reject) => {
    child.once("exit", () => reject(new Error(`the data service did not start:\n${output}`)));
    child.on("message", (message: LauncherMessage) => {
      if (message.type === "ready") resolve(message.ops);
    });
  });
  const end = async (signal: NodeJS.Signals) => {
    if (hasEnded(child)) return child.exitCode;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
    return child.exitCode;
  };
  return {
    ops,
    end,
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
