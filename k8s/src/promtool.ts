import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder, putIntoCache } from "@devmesh/launcher/nats-server/binary-cache";
import { executablesOnPath, isExecutable } from "@devmesh/launcher/nats-server/path-search";
import { tempFolder } from "@devmesh/testkit/temp-folder";

/** Longest time of a step, in milliseconds. */
const STEP_MS = 5 * 60_000;

const run = promisify(execFile);

/**
 * Path of promtool: that of the machine, or out of Debian's package `prometheus`, which is not installed. To build it
 * takes minutes of processor time. Null without both; throws where root cannot download the package.
 */
export async function findPromtool(): Promise<string | null> {
  const [installed] = await executablesOnPath("promtool", process.env.PATH);
  if (installed !== undefined) return installed;
  const cached = join(cacheFolder(process.env), "promtool");
  if (await isExecutable(cached)) return cached;
  const [apt] = await executablesOnPath("apt-get", process.env.PATH);
  if (apt === undefined) return null;
  const isRoot = process.getuid?.() === 0;
  try {
    await putIntoCache(cached, (unfinished) => extractPromtool(apt, isRoot, unfinished));
  } catch (error) {
    if (isRoot) throw error;
    return null;
  }
  return cached;
}

async function extractPromtool(apt: string, isRoot: boolean, target: string): Promise<void> {
  await using folder = await tempFolder();
  const options = { cwd: folder.path, timeout: STEP_MS };
  const download = () => run(apt, ["download", "prometheus"], options);
  await download().catch(async (error: unknown) => {
    if (!isRoot) throw error;
    await run(apt, ["update"], options);
    await download();
  });
  await run("sh", ["-c", "dpkg-deb --extract prometheus_*.deb ."], options);
  await run("cp", ["usr/bin/promtool", target], options);
}
