import { execFile } from "node:child_process";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { storeOwners } from "@devmesh/contracts/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { backUpStores } from "../../src/mesh/store-backup.ts";

const program = resolve(import.meta.dirname, "../../src/backup.ts");

let folder: Awaited<ReturnType<typeof tempFolder>>;
let target: string;
/** What a folder of a backup has. */
const copies = storeOwners.map((service) => `${service}.db`).sort();
const fileOf = (service: string) => join(folder.path, `${service}.db`);

beforeEach(async () => {
  folder = await tempFolder();
  target = join(folder.path, "backups", "monday");
});
afterEach(async () => await folder[Symbol.asyncDispose]());

/** A store that a service holds open: its last writes are in the log beside the file. */
function openStore(service: string, rows: number): DatabaseSync {
  const db = new DatabaseSync(fileOf(service));
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE kept (n INTEGER)");
  for (let n = 1; n <= rows; n++) db.prepare("INSERT INTO kept VALUES (?)").run(n);
  return db;
}

function rowsOf(copy: string): number {
  const db = new DatabaseSync(copy, { readOnly: true });
  try {
    return Number(db.prepare("SELECT count(*) AS n FROM kept").get()?.n);
  } finally {
    db.close();
  }
}

describe("a backup of the stores", () => {
  test("holds what was committed, while other processes have the stores open", async () => {
    const stores = storeOwners.map((service, at) => openStore(service, at + 1));
    const copied = await backUpStores(fileOf, target);
    expect(copied).toEqual(
      storeOwners.map((service) => ({
        path: join(target, `${service}.db`),
        bytes: expect.any(Number),
      })),
    );
    expect(Math.min(...copied.map(({ bytes }) => bytes))).toBeGreaterThan(0);
    expect((await readdir(target)).sort()).toEqual(copies);
    for (const [at, service] of storeOwners.entries()) {
      expect(rowsOf(join(target, `${service}.db`))).toBe(at + 1);
    }
    for (const store of stores) store.close();
    // And when no process has.
    await backUpStores(fileOf, join(folder.path, "tuesday"));
    expect(rowsOf(join(folder.path, "tuesday", "data.db"))).toBe(storeOwners.indexOf("data") + 1);
  });

  test("copies devices before their credentials", () => {
    expect(storeOwners.indexOf("devices")).toBeLessThan(storeOwners.indexOf("keys"));
  });

  test("is its owner's alone, whatever the umask of the command", async () => {
    for (const service of storeOwners) openStore(service, 1).close();
    const run = [
      "umask 0 && exec",
      process.execPath,
      "--disable-warning=ExperimentalWarning",
      program,
      target,
    ];
    const env = { PATH: process.env.PATH, DATA_DIR: folder.path };
    await promisify(execFile)("sh", ["-c", run.join(" ")], { env });
    const modeOf = async (path: string) => [path, (await stat(path)).mode & 0o777];
    const paths = (await readdir(target)).sort().map((name) => join(target, name));
    expect(await Promise.all([join(target, ".."), target, ...paths].map(modeOf))).toEqual([
      [join(target, ".."), 0o700],
      [target, 0o700],
      ...copies.map((name) => [join(target, name), 0o600]),
    ]);
  });

  test("never goes into a folder with something in it, and leaves that as it is", async () => {
    for (const service of storeOwners) openStore(service, 1).close();
    await mkdir(target, { recursive: true });
    await backUpStores(fileOf, target);
    await writeFile(join(target, "note"), "of mine");
    await expect(backUpStores(fileOf, target)).rejects.toThrow("is there already and not an empty folder");
    expect((await readdir(target)).sort()).toEqual([...copies, "note"].sort());
    expect(await readdir(join(target, ".."))).toEqual(["monday"]);
  });

  test("that lacks a store is none at all", async () => {
    openStore("devices", 1).close();
    openStore("keys", 1).close();
    await expect(backUpStores(fileOf, target)).rejects.toThrow("There is no store");
    expect(await readdir(join(target, ".."))).toEqual([]);
  });
});
