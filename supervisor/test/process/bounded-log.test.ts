import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { boundedLog } from "../../src/process/bounded-log.ts";

test("a log keeps at most two files of its size, the newest lines in them", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "keys.log");
  const log = boundedLog(file, 100);
  for (let line = 0; line < 50; line++) log.write(`line ${String(line).padStart(4, "0")}\n`);
  log.close();
  expect((await readdir(folder.path)).sort()).toEqual(["keys.log", "keys.log.1"]);
  const kept = (await readFile(`${file}.1`, "utf8")) + (await readFile(file, "utf8"));
  expect(kept.endsWith("line 0049\n")).toBe(true);
  expect(kept.length).toBeLessThanOrEqual(220);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test("a log continues what an earlier start wrote", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "keys.log");
  for (const line of ["one\n", "two\n"]) {
    const log = boundedLog(file);
    log.write(line);
    log.close();
  }
  expect(await readFile(file, "utf8")).toBe("one\ntwo\n");
});
