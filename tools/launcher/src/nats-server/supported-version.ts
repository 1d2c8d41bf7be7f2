import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The nats-server whose behaviour the mesh relies on and the suite in testkit proves (ADR 1). */
export const PINNED_VERSION = "2.15.2";

const run = promisify(execFile);

/**
 * Why a nats-server of this version is refused, as the end of a sentence; null when it is fit: the pinned minor, the
 * pinned patch or a newer one.
 */
export function reasonAgainst(version: string): string | null {
  const found = /^(\d+)\.(\d+)\.(\d+)$/.exec(version);
  if (!found) return `its version "${version}" is not a release`;
  const [major, minor, patch] = found.slice(1).map(Number);
  const [pinnedMajor, pinnedMinor, pinnedPatch] = PINNED_VERSION.split(".").map(Number);
  const series = `${pinnedMajor}.${pinnedMinor}`;
  if (major !== pinnedMajor || minor !== pinnedMinor) {
    return `it is version ${version}, and the mesh is proven on ${series}.x from ${PINNED_VERSION} on only`;
  }
  if ((patch ?? 0) < (pinnedPatch ?? 0)) return `it is version ${version}, older than ${PINNED_VERSION}`;
  return null;
}

/**
 * Asks a nats-server binary for its version, waiting at most five seconds.
 * Throws when the file cannot be run or does not answer like nats-server.
 */
export async function versionOf(binary: string): Promise<string> {
  const { stdout } = await run(binary, ["--version"], { timeout: 5_000, windowsHide: true });
  const version = /nats-server: v(\S+)/.exec(stdout)?.[1];
  if (!version) throw new Error(`${binary} does not answer like nats-server`);
  return version;
}
