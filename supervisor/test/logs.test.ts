import { appendFile, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { startProcess } from "@devmesh/testkit/process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { readableLine } from "../src/mesh/log-lines.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
const logOf = (part: string) => join(folder.path, "logs", `${part}.log`);
const line = (second: number, level: string, msg: string, more: object = {}) =>
  `${JSON.stringify({ level, time: `2026-01-31T12:00:0${second}.000Z`, service: "x", replica: "r", ...more, msg })}\n`;

beforeEach(async () => {
  folder = await tempFolder();
  await mkdir(join(folder.path, "logs"));
  await writeFile(logOf("keys"), line(1, "info", "ready") + line(4, "warn", "store is slow", { ms: 900 }));
  await writeFile(logOf("gateway"), line(2, "info", "request", { route: "/api/v2/devices", status: 200 }));
  await writeFile(
    logOf("nats-server"),
    "[7] 2026/01/31 12:00:03.250000 [ERR] 127.0.0.1:1 - authentication error\n",
  );
});
afterEach(async () => await folder[Symbol.asyncDispose]());

function logs(...args: string[]) {
  return startProcess(process.execPath, [join(repository, "tools/launcher/run.mjs"), "logs", ...args], {
    cwd: repository,
    env: { ...process.env, DATA_DIR: folder.path, TZ: "UTC" },
  });
}

describe("npm run logs", () => {
  test("shows the lines of all parts for people, in the order of time", async () => {
    const { ended, output } = logs();
    expect(await ended).toBe(0);
    expect(output().split("\n")).toEqual([
      "2026-01-31 12:00:01.000 keys        info  ready",
      "2026-01-31 12:00:02.000 gateway     info  request  route=/api/v2/devices  status=200",
      "2026-01-31 12:00:03.250 nats-server error 127.0.0.1:1 - authentication error",
      "2026-01-31 12:00:04.000 keys        warn  store is slow  ms=900",
      "",
    ]);
  });

  test("shows the last lines of chosen parts and levels", async () => {
    const chosen = logs("keys", "nats-server", "--level", "warn", "--lines", "1");
    expect(await chosen.ended).toBe(0);
    expect(chosen.output()).toBe("2026-01-31 12:00:04.000 keys        warn  store is slow  ms=900\n");
  });

  test("follows the logs, also into a new file, until Ctrl-C", async () => {
    const followed = logs("keys", "--lines", "0", "--follow");
    await appendFile(logOf("keys"), "");
    await eventually(async () => {
      await appendFile(logOf("keys"), line(5, "info", "later"));
      return followed.output().includes("later");
    });
    await rename(logOf("keys"), `${logOf("keys")}.1`);
    await writeFile(logOf("keys"), line(6, "info", "in a new file"));
    await eventually(() => followed.output().includes("in a new file"));
    expect(followed.output()).not.toContain("ready");
    expect(await followed.end()).toBe(0);
  });

  test("says where it looked in vain, and what is wrong with its command line", async () => {
    const none = logs("mailer");
    expect(await none.ended).toBe(1);
    expect(none.output()).toBe(`${folder.path}/logs has no such lines; set DATA_DIR as for the start.\n`);
    for (const args of [["nobody"], ["--lines", "few"], ["--level", "loud"]]) {
      const wrong = logs(...args);
      expect(await wrong.ended).toBe(2);
      expect(wrong.output()).toContain("Usage: npm run logs");
    }
  });
});

test("an error has its message and stack; a line of no known form is shown as it is", () => {
  const err = { type: "Error", message: "no space", stack: "Error: no space\n    at x.ts:1" };
  expect(readableLine(line(1, "error", "not stored", { err }).trim()).text).toBe(
    "not stored  no space\n    at x.ts:1",
  );
  expect(readableLine("TypeError: x is not defined")).toEqual({
    at: null,
    level: "info",
    text: "TypeError: x is not defined",
  });
});
