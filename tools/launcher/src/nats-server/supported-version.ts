import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The tested nats-server (ADR 1). */
export const PINNED_VERSION = "2.15.2";

const run = promisify(execFile);

/** Why this version is refused, as the end of a sentence; null for the pinned minor with the same or a newer patch. */
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

/** The version of a nats-server binary; throws when it cannot be run or is another program. */
export async function versionOf(binary: string): Promise<string> {
  const { stdout } = await run(binary, ["--version"], { timeout: 5_000, windowsHide: true });
  const version = /nats-server: v(\S+)/.exec(stdout)?.[1];
  if (!version) throw new Error(`${binary} does not answer like nats-server`);
  return version;
}
