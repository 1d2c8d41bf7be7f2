import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import { dataFolder, lockDataFolder, prepareDataFolder, replaceFile } from "../../src/mesh/data-folder.ts";

describe("the data folder", () => {
  test("is made for its owner alone", async () => {
    await using folder = await tempFolder();
    const data = dataFolder(join(folder.path, "a", "b"));
    await prepareDataFolder(data);
    expect((await stat(data.path)).mode & 0o777).toBe(0o700);
    expect(await readdir(data.path)).toEqual(["logs"]);
  });

  test("that cannot be written is one sentence with the variable that changes it", async () => {
    await using folder = await tempFolder();
    await writeFile(join(folder.path, "file"), "");
    const data = dataFolder(join(folder.path, "file", "data"));
    await expect(prepareDataFolder(data)).rejects.toThrow(
      /data folder .*file\/data cannot be written.*DATA_DIR/,
    );
  });

  test("below a folder where none can be made is the same sentence, and at once", async () => {
    const data = dataFolder(process.platform === "linux" ? "/proc/nowhere/data" : "/dev/null/data");
    await expect(prepareDataFolder(data)).rejects.toThrow(/cannot be written \((ENOENT|ENOTDIR)\)/);
  });

  test("belongs to one mesh at a time", async () => {
    await using folder = await tempFolder();
    const data = dataFolder(folder.path);
    const lock = lockDataFolder(data);
    expect(() => lockDataFolder(data)).toThrow(/belongs to a mesh that runs already.*DATA_DIR/);
    lock.release();
    lockDataFolder(data).release();
  });

  test("whose lock cannot be opened is said to be one that cannot be written, not one that is taken", async () => {
    await using folder = await tempFolder();
    const data = dataFolder(folder.path);
    await mkdir(join(data.path, "launcher.lock"));
    expect(() => lockDataFolder(data)).toThrow(
      /cannot be written \(.*launcher\.lock: unable to open.*DATA_DIR/,
    );
  });

  test("is free again when the process that had it was killed", async () => {
    await using folder = await tempFolder();
    const data = dataFolder(folder.path);
    const module = new URL("../../src/mesh/data-folder.ts", import.meta.url).href;
    const script = `
      import { dataFolder, lockDataFolder } from ${JSON.stringify(module)};
      globalThis.lock = lockDataFolder(dataFolder(${JSON.stringify(folder.path)}));
      console.log("locked");
      setInterval(() => {}, 1000);`;
    const holder = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", script],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    await once(holder.stdout, "data");
    expect(() => lockDataFolder(data)).toThrow(/runs already/);
    holder.kill("SIGKILL");
    await once(holder, "exit");
    lockDataFolder(data).release();
  });
});

test("a replaced file is whole, private and leaves nothing beside it", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "mesh.json");
  await Promise.all(Array.from({ length: 20 }, (_, n) => replaceFile(file, String(n).repeat(1_000))));
  expect(await readFile(file, "utf8")).toMatch(/^(\d+?)\1{999}$/);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder.path)).toEqual(["mesh.json"]);
});
