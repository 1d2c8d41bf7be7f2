import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemErrorCode } from "../process/system-error.ts";
import { syncToDisk } from "./sync-to-disk.ts";

/** Files younger than this are synced, in milliseconds: the system itself has written older ones to the disk. */
const youngMs = 10 * 60_000;

/**
 * Syncs the files by which nats-server finds its streams and consumers again. It syncs what they hold, but their
 * descriptions only with `sync_interval: always`: in a power cut soon after their creation they would be lost with
 * all that they hold.
 */
export async function syncDescriptions(jetstream: string): Promise<void> {
  const paths = await readdir(jetstream, { recursive: true });
  for (const path of paths) {
    if (!["meta.inf", "meta.sum"].includes(basename(path))) continue;
    try {
      const file = join(jetstream, path);
      if (Date.now() - (await stat(file)).mtimeMs >= youngMs) continue;
      await syncToDisk(file);
      await syncToDisk(dirname(file));
    } catch (error) {
      // A session may end meanwhile, and its consumers with it.
      if (systemErrorCode(error) !== "ENOENT") throw error;
    }
  }
}
