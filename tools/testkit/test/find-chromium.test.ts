import { chmod, mkdir, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { findChromium } from "../src/find-chromium.ts";
import { tempFolder } from "../src/temp-folder.ts";

async function file(path: string, mode: number): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, "#!/bin/sh\n");
  await chmod(path, mode);
  return path;
}

describe("Chromium is looked up", () => {
  test("first in CHROMIUM_BIN, whatever stands on PATH", async () => {
    await using folder = await tempFolder();
    const own = await file(join(folder.path, "own", "browser"), 0o755);
    await file(join(folder.path, "bin", "chromium"), 0o755);
    expect(await findChromium({ CHROMIUM_BIN: own, PATH: join(folder.path, "bin") })).toBe(own);
  });

  test("on PATH by the names that packages give it, first the one without windows, last Chrome", async () => {
    await using folder = await tempFolder();
    const [first, second] = [join(folder.path, "first"), join(folder.path, "second")];
    const PATH = [first, second].join(delimiter);
    expect(await findChromium({ PATH })).toBeNull();
    const chrome = await file(join(first, "google-chrome"), 0o755);
    expect(await findChromium({ PATH })).toBe(chrome);
    const chromium = await file(join(second, "chromium-browser"), 0o755);
    expect(await findChromium({ PATH })).toBe(chromium);
    expect(await findChromium({ CHROMIUM_BIN: "", PATH })).toBe(chromium);
    const withoutWindows = await file(join(second, "chromium-headless-shell"), 0o755);
    expect(await findChromium({ PATH })).toBe(withoutWindows);
  });

  test("but not where CHROMIUM_BIN names something that cannot be run: that is an error, not an absence", async () => {
    await using folder = await tempFolder();
    const missing = join(folder.path, "missing");
    await expect(findChromium({ CHROMIUM_BIN: missing })).rejects.toThrow(
      `CHROMIUM_BIN names ${missing}, which cannot be run`,
    );
    const notes = await file(join(folder.path, "notes.txt"), 0o644);
    await expect(findChromium({ CHROMIUM_BIN: notes })).rejects.toThrow("cannot be run");
  });
});
