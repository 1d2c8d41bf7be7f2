import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A process that is part of a benchmark. It ends with the benchmark's own, however that ends. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** Resolves with its first message. Rejects when it ends without one. */
  readonly ready: Promise<unknown>;
}

/**
 * Runs a module as a process of its own; `url` is a `file:` URL. What it prints is thrown away, what it complains of
 * is shown.
 */
export function startChild(url: string, env: NodeJS.ProcessEnv = {}): Child {
  const child = fork(fileURLToPath(url), [], {
    env: { ...process.env, ...env },
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const told = once(child, "message").then(([message]: unknown[]) => message);
  const ready = Promise.race([
    told,
    ended.then(([code]: unknown[]) => {
      throw new Error(`${url} ended with ${code}`);
    }),
  ]);
  // Whoever waits for it hears of it; a child that ends later is none of their concern.
  ready.catch(() => undefined);
  return {
    pid: child.pid ?? Number.NaN,
    ready,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
      await ended;
    },
  };
}

/** In a child: tells the benchmark that it is ready, and ends when the benchmark does. */
export function reportReady(message: string | number = "ready"): void {
  process.once("disconnect", () => process.exit(0));
  process.send?.(message);
}
