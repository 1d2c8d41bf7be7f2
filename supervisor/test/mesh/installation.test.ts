import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import { ensureInstallation, readInstallation } from "../../src/mesh/installation.ts";

describe("the secrets of an installation", () => {
  test("are made once, random, and kept for the owner alone", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "installation.json");
    const first = await ensureInstallation(file, ["keys", "data"]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(first.passwords.keys).not.toBe(first.passwords.data);
    expect(Buffer.from(first.key_encryption_key, "base64")).toHaveLength(32);
    expect(await ensureInstallation(file, ["keys", "data"])).toEqual(first);
    const other = await ensureInstallation(join(folder.path, "other.json"), ["keys"]);
    expect(other.passwords.keys).not.toBe(first.passwords.keys);
  });

  test("get a password for a user that a later version adds, and keep the others", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "installation.json");
    const first = await ensureInstallation(file, ["keys"]);
    const second = await ensureInstallation(file, ["keys", "new"]);
    expect(second.passwords).toMatchObject(first.passwords);
    expect(await readInstallation(file)).toEqual(second);
  });

  test("that are damaged are not replaced: what they encrypt would be lost", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "installation.json");
    await writeFile(file, '{"passwords":');
    await expect(ensureInstallation(file, ["keys"])).rejects.toThrow(/is damaged.*backup/);
    expect(await readFile(file, "utf8")).toBe('{"passwords":');
  });
});
