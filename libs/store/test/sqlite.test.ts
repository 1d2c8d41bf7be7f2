import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { GroupCommit } from "../src/group-commit.ts";
import { inTransaction, openSqlite, openSqliteReader } from "../src/sqlite.ts";
import { isStoreUnavailable } from "../src/store-unavailable.ts";

let folder: string;
let path: string;
const options = {
  migrations: ["CREATE TABLE thing (id INTEGER PRIMARY KEY) STRICT"],
} as const;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "store-"));
  path = join(folder, "deep", "things.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a store keeps its rows over a reopening and takes further migrations once", () => {
  const first = openSqlite(path, options);
  first.db.exec("INSERT INTO thing VALUES (7)");
  first.close();
  const migrations = [...options.migrations, "ALTER TABLE thing ADD COLUMN name TEXT"];
  for (let round = 0; round < 2; round++) {
    const again = openSqlite(path, { ...options, migrations });
    expect(again.db.prepare("SELECT id, name FROM thing").all()).toEqual([{ id: 7, name: null }]);
    again.close();
  }
});

test("a second process is refused the store and told why, and gets it when the first is gone", () => {
  const first = openSqlite(path, options);
  const script = `import { openSqlite } from ${JSON.stringify(new URL("../src/sqlite.ts", import.meta.url).href)};
    openSqlite(${JSON.stringify(path)}, { migrations: [] });`;
  const open = () =>
    spawnSync(
      process.execPath,
      ["--input-type=module", "-e", script.replace("[]", JSON.stringify(options.migrations))],
      { encoding: "utf8" },
    );
  const refused = open();
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain("runs as one replica");
  first.close();
  expect(open().status).toBe(0);
});

test("a file that is no database is refused by its name and left as it is", () => {
  openSqlite(path, options).close();
  const damaged = "not what SQLite writes".repeat(500);
  writeFileSync(path, damaged);
  for (let round = 0; round < 2; round++) {
    expect(() => openSqlite(path, options)).toThrow(
      `the store ${path} cannot be opened: file is not a database`,
    );
  }
  expect(readFileSync(path, "utf8")).toBe(damaged);
});

test("a schema newer than the program is refused", () => {
  openSqlite(path, options).close();
  expect(() => openSqlite(path, { ...options, migrations: [] })).toThrow("schema version 1");
});

test("a migration that fails leaves the store at the version before", () => {
  openSqlite(path, options).close();
  const broken = [...options.migrations, "CREATE TABLE half (id INTEGER); SELECT nonsense"];
  expect(() => openSqlite(path, { ...options, migrations: broken })).toThrow("nonsense");
  const store = openSqlite(path, options);
  expect(store.db.prepare("SELECT name FROM sqlite_schema WHERE name = 'half'").all()).toEqual([]);
  store.close();
});

test("a reader sees what the writer committed and cannot write", () => {
  const writer = openSqlite(path, options);
  const reader = openSqliteReader(path);
  inTransaction(writer.db, () => writer.db.exec("INSERT INTO thing VALUES (1)"));
  expect(reader.prepare("SELECT count(*) AS n FROM thing").get()).toEqual({ n: 1 });
  expect(() => reader.exec("INSERT INTO thing VALUES (2)")).toThrow();
  reader.close();
  writer.close();
});

test("a throw inside a transaction leaves nothing of it", () => {
  const store = openSqlite(path, options);
  expect(() =>
    inTransaction(store.db, () => {
      store.db.exec("INSERT INTO thing VALUES (1)");
      throw new Error("on purpose");
    }),
  ).toThrow("on purpose");
  expect(store.db.prepare("SELECT count(*) AS n FROM thing").get()).toEqual({ n: 0 });
  store.close();
});

test("a store that has no room is unavailable, and one that is given what it cannot take is not", () => {
  const { db, close } = openSqlite(path, { ...options, migrations: ["CREATE TABLE t (v BLOB) STRICT"] });
  const failureOf = (statement: string) => {
    try {
      db.exec(statement);
      return null;
    } catch (error) {
      return error;
    }
  };
  db.exec(`PRAGMA max_page_count = ${Number(db.prepare("PRAGMA page_count").get()?.page_count) + 2}`);
  expect(isStoreUnavailable(failureOf("INSERT INTO t VALUES (zeroblob(100000))"))).toBe(true);
  const refused = failureOf("INSERT INTO t VALUES ('no blob')");
  expect(refused).toMatchObject({ errstr: "constraint failed" });
  expect(isStoreUnavailable(refused)).toBe(false);
  expect(failureOf("INSERT INTO t VALUES (zeroblob(1))")).toBeNull();
  close();
});

test("a folder that cannot be made is an error that names it", () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  expect(() => openSqlite(join(file, "below", "things.db"), options)).toThrow(file);
});

test("a folder that the system says is missing and cannot be made is an error, not a wait without end", () => {
  const noSuchFileSystem = process.platform === "linux" ? "/proc/nowhere/deep" : "/dev/null/nowhere";
  expect(() => openSqlite(join(noSuchFileSystem, "things.db"), options)).toThrow(/ENOENT|ENOTDIR/);
});

test("writes of one turn share a commit, and one that throws is undone alone", async () => {
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE TABLE thing (id INTEGER PRIMARY KEY) STRICT");
  const commits = new GroupCommit(db);
  const insert = db.prepare("INSERT INTO thing VALUES (?)");
  const write = (...ids: number[]) =>
    commits.run(() => ids.map((id) => insert.run(id)).length, new AbortController().signal);
  const outcomes = await Promise.allSettled([write(1), write(2, 1), write(3)]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(
    db
      .prepare("SELECT id FROM thing ORDER BY id")
      .all()
      .map(({ id }) => id),
  ).toEqual([1, 3]);
  db.close();
  await expect(write(4)).rejects.toThrow();
});
