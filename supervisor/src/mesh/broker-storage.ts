import { readdir, stat, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type BackOffLimits, backOff } from "../process/back-off.ts";
import { systemErrorCode } from "../process/errors.ts";
import type { RunningProcess, Supervision } from "../process/supervision.ts";
import { syncToDisk } from "./data-folder.ts";

/** Free space, in bytes, with which a restart is worthwhile. */
const enoughBytes = 16 * 1024 * 1024;
/** How often free space is checked, in milliseconds. */
const lookEveryMs = 1_000;
/** Where space does not help, as on a broken disk, devices' connections are cut rarely. */
const restarts: BackOffLimits = {
  afterHealthMs: 1_000,
  firstMs: 5_000,
  longestMs: 60_000,
  healthyAfterMs: 120_000,
};

/** What {@link restartAfterWriteErrors} needs. */
export interface WriteErrorOptions {
  /** Folder of JetStream's files. */
  readonly folder: string;
  /** The supervision of nats-server; null until it has started. */
  readonly broker: () => Supervision<RunningProcess> | null;
  /** Time that nats-server has to close its files, in milliseconds. */
  readonly graceMs: number;
  readonly log: (sentence: string) => void;
  /** Ends the wait for free space. */
  readonly signal: AbortSignal;
}

/**
 * Restarts nats-server after a write error as soon as there is free space: until a restart it stores nothing more in
 * the stream that failed. Returns a function that takes the cause of each write error.
 */
export function restartAfterWriteErrors(options: WriteErrorOptions): (cause: string) => void {
  const { folder, broker, graceMs, log, signal } = options;
  const waits = backOff(restarts);
  let mending = false;

  async function mend(cause: string): Promise<void> {
    const failed = broker()?.current() ?? null;
    log(`nats-server could not write (${cause}); it is restarted when there is room in ${folder}.`);
    await sleep(waits.next(performance.now()), undefined, { signal });
    while (!(await hasRoom(folder))) await sleep(lookEveryMs, undefined, { signal });
    const running = broker()?.current() ?? null;
    // Otherwise another process has been started already.
    if (failed === null || running === failed) {
      log("There is room: nats-server is restarted.");
      await running?.end(graceMs);
    }
    waits.up(performance.now());
  }

  return (cause) => {
    if (mending || signal.aborted) return;
    mending = true;
    mend(cause)
      .catch(() => undefined)
      .finally(() => {
        mending = false;
      });
  };
}

async function hasRoom(folder: string): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize >= enoughBytes;
  } catch {
    return false;
  }
}

/** Younger files are synced, in milliseconds: the system has written older ones to the disk by itself. */
const youngMs = 10 * 60_000;

/**
 * Syncs the descriptions of streams and consumers, without which a stream is lost in a power cut. nats-server syncs
 * their content, but the descriptions only with `sync_interval: always`.
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
      // A session that ends meanwhile takes its consumers along.
      if (systemErrorCode(error) !== "ENOENT") throw error;
    }
  }
}
