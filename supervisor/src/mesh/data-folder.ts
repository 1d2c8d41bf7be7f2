import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StartFailure, systemErrorCode } from "../process/errors.ts";

/** The paths in a data folder; nothing is made. */
export function dataFolder(path: string) {
  return {
    path,
    installation: join(path, "installation.json"),
    meshFile: join(path, "mesh.json"),
    masterKey: join(path, "master-key"),
    outbox: join(path, "outbox"),
    brokerConfig: join(path, "nats-server.conf"),
    brokerPid: join(path, "nats-server.pid"),
    jetstream: join(path, "jetstream"),
    logOf: (part: string) => join(path, "logs", `${part}.log`),
    /** `STORE_URL` of a service that keeps its data here. */
    storeUrlOf: (service: string) => `sqlite:${join(path, `${service}.db`)}`,
  };
}

/** The files and folders of one mesh's data folder. */
export type DataFolder = Readonly<ReturnType<typeof dataFolder>>;

/** What a first start writes, in bytes. */
const FIRST_START_BYTES = 1024 * 1024;

/** Makes the folder (mode 0700) and checks that it can be written. Throws a {@link StartFailure}. */
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
  const owner = why === "EACCES" ? `let it belong to user ${process.getuid?.()}, or ` : "";
  return new StartFailure(
    `The data folder ${folder.path} cannot be written (${why}); ${owner}set DATA_DIR to one that can.`,
    { cause },
  );
}

/** SQLite's code for a file that another process has locked: the last byte of extended codes. */
const SQLITE_BUSY = 5;

/**
 * Locks the folder for this process until it ends. The lock is SQLite's own, so the operating system holds it on Linux
 * and macOS alike and none gets stale. Throws a {@link StartFailure} when another mesh holds it.
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

/** Replaces a file atomically (mode 0600): after a crash it has either the old content or the new. */
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

/**
 * Makes a folder (mode 0700) and its missing parents; an existing one stays as it is. Throws the system's error.
 * Node's own `recursive` never ends where a missing folder cannot be made, as below `/proc`.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "EEXIST" && (await stat(path)).isDirectory()) return;
    const above = dirname(path);
    if (code !== "ENOENT" || above === path) throw error;
    await makeFolder(above);
    await mkdir(path, { mode: 0o700 });
  }
}

/** The content of a file or folder survives a power cut once this resolves. */
export async function syncToDisk(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
