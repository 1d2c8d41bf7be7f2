import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A process of a benchmark, which ends with it. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** Resolves with its first message; rejects when it ends without one. */
  readonly ready: Promise<unknown>;
  /** Sends it a message, and resolves with what it answers. */
  ask(): Promise<unknown>;
}

/** Runs the module at a `file:` URL as a process. Its standard output goes to a file descriptor, or is discarded. */
export function startChild(
  url: string,
  env: NodeJS.ProcessEnv = {},
  output: number | "ignore" = "ignore",
): Child {
  const child = fork(fileURLToPath(url), [], {
    env: { ...process.env, ...env },
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", output, "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const message = once(child, "message").then(([first]: unknown[]) => first);
  const ready = Promise.race([
    message,
    ended.then(([code]: unknown[]) => {
      throw new Error(`${url} ended with ${code}`);
    }),
  ]);
  // A rejection that nobody awaits is no error of the benchmark.
  ready.catch(() => undefined);
  return {
    pid: child.pid ?? Number.NaN,
    ready,
    async ask() {
      const answer = once(child, "message");
      child.send("ask");
      return (await answer)[0];
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
      await ended;
    },
  };
}

/** In a child: reports that it is ready, and ends with the benchmark. */
export function reportReady(message: string | number | object = "ready"): void {
  process.once("disconnect", () => process.exit(0));
  process.send?.(message);
}
