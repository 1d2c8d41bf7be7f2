import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { guardAgainstOwnDeath } from "./parent-death-guard.ts";
import type { RunningProcess } from "./supervision.ts";

/** Every child of the supervisor, so that none outlives it. */
export interface ChildRegistry {
  /** Starts a child in a new session: Ctrl-C reaches the supervisor alone, which ends its children in order. */
  spawn(
    command: string,
    args: readonly string[],
    options: SpawnOptions & { guarded: boolean },
  ): RegisteredChild;
  /** SIGKILL to all that still run, at once. */
  killAll(): void;
}

/** A child and the supervision's view of it. */
export interface RegisteredChild extends RunningProcess {
  readonly process: ChildProcess;
}

/** Makes an empty registry; children that still run when this process exits are killed. */
export function childRegistry(): ChildRegistry {
  const running = new Set<ChildProcess>();
  const killAll = () => {
    for (const child of running) child.kill("SIGKILL");
  };
  process.once("exit", killAll);
  return {
    spawn(command, args, { guarded, ...options }) {
      const guard = guarded ? guardAgainstOwnDeath() : null;
      const child = spawn(command, args, { ...options, detached: true });
      if (child.pid !== undefined) guard?.watch(child.pid);
      running.add(child);
      const ended = new Promise<string>((resolve) => {
        const end = (how: string) => {
          running.delete(child);
          guard?.release();
          resolve(how);
        };
        child.once("error", (error) => {
          if (child.pid === undefined) end(`could not be run (${error.message})`);
        });
        child.once("close", (code, signal) =>
          end(signal ? `was killed (${signal})` : `ended (exit code ${code})`),
        );
      });
      return {
        process: child,
        pid: child.pid ?? Number.NaN,
        ended,
        async end(graceMs) {
          if (!running.has(child)) return;
          child.kill("SIGTERM");
          const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
          await ended;
          clearTimeout(timer);
        },
      };
    },
    killAll,
  };
}
