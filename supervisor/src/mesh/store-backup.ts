import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { type ServiceName, storeOwners } from "@devmesh/contracts/mesh";
import { StartFailure, systemErrorCode } from "../process/errors.ts";
import { makeFolder, syncToDisk } from "./data-folder.ts";

/** A file of a backup. */
export interface CopiedStore {
  readonly path: string;
  readonly bytes: number;
}

/**
 * Copies the SQLite stores of a mesh, which may run, into a folder (mode 0700) that is empty or missing; it ends in
 * `.part` until all copies are on the disk. `devices` is first: a listed device then has its credentials in the copy of
 * `keys`. Throws a {@link StartFailure} for an unusable store or folder.
 */
export async function backUpStores(
  fileOf: (service: ServiceName) => string,
  folder: string,
): Promise<CopiedStore[]> {
  const target = resolve(folder);
  const unfinished = `${target}.${randomUUID()}.part`;
  try {
    await makeFolder(unfinished);
    for (const service of storeOwners) {
      await copyStore(fileOf(service), join(unfinished, `${service}.db`));
    }
    await syncToDisk(unfinished);
    await rename(unfinished, target);
    await syncToDisk(resolve(target, ".."));
    return await Promise.all(
      storeOwners.map(async (service) => {
        const path = join(target, `${service}.db`);
        return { path, bytes: (await stat(path)).size };
      }),
    );
  } catch (cause) {
    if (cause instanceof StartFailure) throw cause;
    const isTaken = ["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(systemErrorCode(cause) ?? "");
    const reason = isTaken ? "it is there already and not an empty folder" : String(cause);
    throw new StartFailure(`The backup could not be written to ${target}: ${reason}.`, { cause });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** All pages in one step, so that a copy is the state of one moment. */
const allPages = 2 ** 31 - 1;

async function copyStore(file: string, copy: string): Promise<void> {
  if (!existsSync(file)) throw new StartFailure(`There is no store ${file}; set DATA_DIR as for the start.`);
  const store = new DatabaseSync(file, { readOnly: true });
  try {
    await backup(store, copy, { rate: allPages });
  } finally {
    store.close();
  }
  await syncToDisk(copy);
}
