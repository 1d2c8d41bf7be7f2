import { spawn } from "node:child_process";
import { Socket } from "node:net";

/** Stops the guard of a child that has ended. */
export type ParentDeathGuard = ReturnType<typeof guardAgainstOwnDeath>;

/** Grace, in seconds, between SIGTERM and SIGKILL. */
const GRACE_SECONDS = 10;

/**
 * Ends a child that cannot notice the end of its parent (nats-server) when this process is killed. A shell reads from a
 * pipe that only this process holds open: end of file without the word `released` means that this process was killed.
 */
export function guardAgainstOwnDeath(pid: number) {
  const script =
    'read -r word && [ "$word" = released ] && exit 0; kill -TERM "$1" 2>/dev/null || exit 0; ' +
    `waited=0; while kill -0 "$1" 2>/dev/null; do waited=$((waited + 1)); [ "$waited" -gt ${GRACE_SECONDS} ] && kill -KILL "$1"; sleep 1; done`;
  const guard = spawn("/bin/sh", ["-c", script, "devmesh-guard", String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.unref();
  // Without a shell the child is not guarded; the next start ends it by its pid file.
  guard.on("error", () => {});
  guard.stdin.on("error", () => {});
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return {
    /** Stops watching: the child has ended. */
    release(): void {
      guard.stdin.end("released\n");
    },
  };
}
