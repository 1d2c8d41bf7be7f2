import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { StartFailure } from "../process/running-process.ts";
import { systemErrorCode } from "../process/system-error.ts";
import { makeFolder } from "./make-folder.ts";
import { syncToDisk } from "./sync-to-disk.ts";

/**
 * The order in which stores are copied while they are written. A device that is made meanwhile then has credentials
 * and records in the later copies and is missing in the first: it gets the same credentials when it is made again. In
 * another order devices would be listed that have lost theirs, or records be left of devices that were deleted.
 */
const inOrder = ["devices", "keys", "data"] as const satisfies readonly ServiceName[];

/**
 * Copies the SQLite stores of a mesh into a folder, which is made (mode 0700) and must be empty or missing; the mesh
 * may run. Each copy is the state of one moment. The folder gets its name when all of them are on the disk: until
 * then it ends in `.part`. @throws StartFailure when a store or the folder is not as it must be.
 */
export async function backUpStores(
  fileOf: (service: (typeof inOrder)[number]) => string,
  folder: string,
): Promise<void> {
  const target = resolve(folder);
  const unfinished = `${target}.${randomUUID()}.part`;
  try {
    await makeFolder(unfinished);
    for (const service of inOrder) {
      await copyStore(fileOf(service), join(unfinished, `${service}.db`));
    }
    await syncToDisk(unfinished);
    await rename(unfinished, target);
    await syncToDisk(resolve(target, ".."));
  } catch (cause) {
    if (cause instanceof StartFailure) throw cause;
    const isTaken = ["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(systemErrorCode(cause) ?? "");
    const reason = isTaken ? "it is there already and not an empty folder" : String(cause);
    throw new StartFailure(`The backup could not be written to ${target}: ${reason}.`, { cause });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** As many as a step can take: a copy is made in one. */
const allPages = 2 ** 31 - 1;

async function copyStore(file: string, copy: string): Promise<void> {
  if (!existsSync(file)) throw new StartFailure(`There is no store ${file}; set DATA_DIR as for the start.`);
  const store = new DatabaseSync(file, { readOnly: true });
  try {
    // Between two steps a writer would make it begin anew.
    await backup(store, copy, { rate: allPages });
  } finally {
    store.close();
  }
  await syncToDisk(copy);
}
