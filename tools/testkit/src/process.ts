import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";

/** A child process of a test; its disposal kills it. */
export interface TestProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  /** All that it printed so far, on both outputs, as it came. */
  output(): string;
  /** Resolves once it has ended and its outputs are read: the exit code, null after a signal. */
  readonly ended: Promise<number | null>;
  /** Sends a signal if it still runs (default SIGTERM) and resolves as `ended`. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a program without input; `ipc` adds a channel, which is closed when the test's process dies. */
export function startProcess(
  command: string,
  args: readonly string[],
  { ipc = false, ...options }: SpawnOptions & { readonly ipc?: boolean } = {},
): TestProcess {
  const child = spawn(command, args, {
    ...options,
    stdio: ["ignore", "pipe", "pipe", ...(ipc ? (["ipc"] as const) : [])],
  });
  let output = "";
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  for (const stream of streams) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  // Not the child's own `close`: it does not come once the child has disconnected the channel.
  const closed = Promise.all([once(child, "exit"), ...streams.map((stream) => once(stream, "close"))]);
  const ended = closed.then(() => child.exitCode);
  const end = async (signal: NodeJS.Signals = "SIGTERM") => {
    if (!hasEnded(child)) child.kill(signal);
    return await ended;
  };
  return {
    child,
    output: () => output,
    ended,
    end,
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}

/** Whether a child process has ended. */
export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
