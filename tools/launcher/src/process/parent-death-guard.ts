import { spawn } from "node:child_process";
import { Socket } from "node:net";

/** Ends a process of ours when we die without a word. */
export interface ParentDeathGuard {
  /** The guarded process has ended, or is to outlive us: forget it. */
  release(): void;
}

/** Grace, in seconds, between SIGTERM and SIGKILL. */
const GRACE_SECONDS = 10;

/**
 * Watches over a child that, unlike our own services, cannot notice that its parent is gone (nats-server). A shell of
 * about 1 MB reads from a pipe whose other end only this process holds: end of file without the word `released` means
 * that this process was killed, and the shell then ends the child. In a session of its own, so that a Ctrl-C does not
 * reach it.
 */
export function guardAgainstOwnDeath(pid: number): ParentDeathGuard {
  const script =
    'read -r word && [ "$word" = released ] && exit 0; kill -TERM "$1" 2>/dev/null || exit 0; ' +
    `waited=0; while kill -0 "$1" 2>/dev/null; do waited=$((waited + 1)); [ "$waited" -gt ${GRACE_SECONDS} ] && kill -KILL "$1"; sleep 1; done`;
  const guard = spawn("/bin/sh", ["-c", script, "devmesh-guard", String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.unref();
  // Without a shell the child is merely unguarded; the next start ends it by its pid file.
  guard.on("error", () => {});
  guard.stdin.on("error", () => {});
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return {
    release() {
      guard.stdin.end("released\n");
    },
  };
}
