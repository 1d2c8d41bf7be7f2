import { randomUUID } from "node:crypto";
import { open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StartFailure } from "../process/running-process.ts";
import { systemErrorCode } from "../process/system-error.ts";
import { makeFolder } from "./make-folder.ts";
import { syncToDisk } from "./sync-to-disk.ts";

/** The files and folders of one mesh's data folder. */
export interface DataFolder {
  readonly path: string;
  readonly installation: string;
  readonly meshFile: string;
  readonly masterKey: string;
  readonly outbox: string;
  readonly brokerConfig: string;
  readonly brokerPid: string;
  readonly jetstream: string;
  logOf(part: string): string;
  /** `STORE_URL` of a service that keeps its data here. */
  storeUrlOf(service: string): string;
}

/** Names what a data folder holds; nothing is made. */
export function dataFolder(path: string): DataFolder {
  return {
    path,
    installation: join(path, "installation.json"),
    meshFile: join(path, "mesh.json"),
    masterKey: join(path, "master-key"),
    outbox: join(path, "outbox"),
    brokerConfig: join(path, "nats-server.conf"),
    brokerPid: join(path, "nats-server.pid"),
    jetstream: join(path, "jetstream"),
    logOf: (part) => join(path, "logs", `${part}.log`),
    storeUrlOf: (service) => `sqlite:${join(path, `${service}.db`)}`,
  };
}

/** What a first start writes, in bytes: with less room there is no use in beginning. */
const FIRST_START_BYTES = 1024 * 1024;

/** Makes the folder (mode 0700) and sees whether it can be written and has room. Throws a {@link StartFailure}. */
export async function prepareDataFolder(folder: DataFolder): Promise<void> {
  try {
    await makeFolder(folder.path);
    await makeFolder(dirname(folder.logOf("any")));
    const probe = join(folder.path, `.probe-${randomUUID()}`);
    try {
      await writeFile(probe, Buffer.alloc(FIRST_START_BYTES));
    } finally {
      await rm(probe, { force: true });
    }
  } catch (cause) {
    throw notWritable(folder, systemErrorCode(cause), cause);
  }
}

function notWritable(folder: DataFolder, why: string | undefined, cause: unknown): StartFailure {
  return new StartFailure(
    `The data folder ${folder.path} cannot be written (${why}); set DATA_DIR to one that can.`,
    { cause },
  );
}

/** SQLite's code for a file that another process has locked; extended codes have it in their last byte. */
const SQLITE_BUSY = 5;

/**
 * Takes the folder for this process until it ends, however it ends: the operating system holds the lock (SQLite's
 * own, so that it works alike on Linux and macOS), and nothing stale can stay behind. Throws a {@link StartFailure}
 * when another mesh has it, or the file of the lock is somebody else's.
 */
export function lockDataFolder(folder: DataFolder): { release(): void } {
  const file = join(folder.path, "launcher.lock");
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(file);
    lock.exec("PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (cause) {
    lock?.close();
    const { errcode = 0, errstr } = cause as { errcode?: number; errstr?: string };
    if ((errcode & 0xff) !== SQLITE_BUSY) throw notWritable(folder, `${file}: ${errstr}`, cause);
    throw new StartFailure(
      `The data folder ${folder.path} belongs to a mesh that runs already; stop that one, or set DATA_DIR to another folder.`,
      { cause },
    );
  }
  const held = lock;
  return { release: () => held.close() };
}

/**
 * Replaces a file as a whole (mode 0600): after a crash at any moment either the old content stands there or the new.
 */
export async function replaceFile(path: string, content: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.part`;
  try {
    const file = await open(unfinished, "wx", 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
    await syncToDisk(dirname(path));
  } finally {
    await rm(unfinished, { force: true });
  }
}
