import { spawn } from "node:child_process";
import { Socket } from "node:net";

/** Ends a child when this process is killed. */
export interface ParentDeathGuard {
  /** Guards the child with that process id. */
  watch(pid: number): void;
  /** Stops watching: the child has ended, or was never started. */
  release(): void;
}

/** Grace, in seconds, between SIGTERM and SIGKILL. */
const GRACE_SECONDS = 10;

/**
 * Ends a child that cannot notice the end of its parent (nats-server) when this process is killed. A shell reads from a
 * pipe that only this process holds open: end of file without the word `released` means that this process was killed.
 * Start it before the child: a child that is started first has no guard for the milliseconds that a shell takes.
 */
export function guardAgainstOwnDeath(): ParentDeathGuard {
  const script =
    'read -r pid && [ "$pid" != released ] || exit 0; read -r word && [ "$word" = released ] && exit 0; ' +
    'kill -TERM "$pid" 2>/dev/null || exit 0; waited=0; while kill -0 "$pid" 2>/dev/null; do ' +
    `waited=$((waited + 1)); [ "$waited" -gt ${GRACE_SECONDS} ] && kill -KILL "$pid"; sleep 1; done`;
  const guard = spawn("/bin/sh", ["-c", script, "devmesh-guard"], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.unref();
  // Without a shell the child is not guarded; the next start ends it by its pid file.
  guard.on("error", () => {});
  guard.stdin.on("error", () => {});
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return {
    watch: (pid) => void guard.stdin.write(`${pid}\n`),
    release: () => void guard.stdin.end("released\n"),
  };
}
