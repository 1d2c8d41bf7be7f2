import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import { brokerLog, serviceLog } from "../../src/mesh/service-log.ts";

async function followed(lines: string, kind: "service" | "broker") {
  await using folder = await tempFolder();
  const file = join(folder.path, "part.log");
  const shown: string[] = [];
  const show = (line: string) => shown.push(line);
  const writeErrors: string[] = [];
  const log =
    kind === "service"
      ? serviceLog("keys", file, show)
      : brokerLog(
          file,
          show,
          (cause) => writeErrors.push(cause),
          () => {},
        );
  const stream = Readable.from([Buffer.from(lines)]);
  log.follow(stream);
  await finished(stream);
  log.close();
  return { shown, writeErrors, problem: log.lastProblem(), written: await readFile(file, "utf8") };
}

describe("a service's log", () => {
  test("goes to its file whole, and warnings and errors to the user in short form", async () => {
    const lines = [
      '{"level":"info","msg":"ready"}',
      '{"level":"warn","msg":"store is slow"}',
      '{"level":"error","msg":"no mail","err":{"message":"connection refused","stack":"..."}}',
    ].join("\n");
    const { shown, written } = await followed(lines, "service");
    expect(written).toBe(`${lines}\n`);
    expect(shown).toEqual(["keys warn: store is slow", "keys error: no mail: connection refused"]);
  });

  test("shows what cannot be seen in a stranger's text, also where its line is JSON", async () => {
    const line = '{"level":"warn","msg":"refused pump\\u202e\\u001b[2J\\nkeys error: forged"}\n';
    const { shown, problem } = await followed(line, "service");
    expect(shown).toEqual(["keys warn: refused pump\\u202e\\u001b[2J\\u000akeys error: forged"]);
    expect(problem).toBe("refused pump\\u202e\\u001b[2J\\u000akeys error: forged");
  });

  test("gives the reason for an end from what Node printed last", async () => {
    const crash =
      "file.ts:1\nthrow x\n      ^\n\nTypeError: x is not defined\n    at file.ts:1:1\n\nNode.js v24.0.0\n";
    expect((await followed(crash, "service")).problem).toBe("TypeError: x is not defined");
  });
});

describe("nats-server's log", () => {
  test("is written and shown without the secrets that a client sent as user name or client id", async () => {
    const token = `dt_${"0aZ".repeat(10)}xy`;
    const line = `[7] 2026/01/01 [ERR] 127.0.0.1:1 - mid:9 - "${token}" - authentication error - User "${token}"\n`;
    const { written, shown, problem } = await followed(line, "broker");
    expect(written).toBe(line.replaceAll(token, "dt_[redacted]"));
    expect(`${shown} ${problem}`).not.toContain(token);
  });

  test("is written and shown with what cannot be seen in the name of a stranger", async () => {
    const { written, shown } = await followed('[7] 2026/01/01 [ERR] User "pump\u202e\u009b2J"\n', "broker");
    for (const text of [written, shown.join()]) expect(text).toContain('User "pump\\u202e\\u009b2J"');
  });

  test("is written and shown up to 300 characters, and without what a stranger sent beyond", async () => {
    const token = `dt_${"0aZ".repeat(10)}xy`;
    const name = `${"x".repeat(250)}${token}${"y".repeat(100_000)}`;
    const forged = "[7] a b [ERR] JetStream out of File resources, will be DISABLED";
    const line = `[7] 2026/01/01 [ERR] User "${name}${forged}"\n[7] 2026/01/01 [ERR] short\n`;
    const { written, shown, problem, writeErrors } = await followed(line, "broker");
    const [first = "", second, ...more] = written.split("\n");
    expect([first.length, second, more]).toEqual([301, "[7] 2026/01/01 [ERR] short", [""]]);
    expect(shown.map((text) => text.length)).toEqual([301, "nats-server: short".length]);
    expect([problem, writeErrors]).toEqual(["short", []]);
    expect(`${written}${shown.join()}`).not.toContain("dt_0aZ");
  });

  test("gives its last error as the reason for an end", async () => {
    const lines = "[7] 2026/01/01 [INF] Starting\n[7] 2026/01/01 [FTL] Error listening on port\n";
    expect((await followed(lines, "broker")).problem).toBe("Error listening on port");
    expect((await followed("nats-server: /x.conf:1:1: bad\n", "broker")).problem).toBe("/x.conf:1:1: bad");
  });

  test("gives the cause of each write error that it keeps until it restarts", async () => {
    const lines = [
      "[7] 2026/01/01 10:00:00.123456 [ERR] JetStream stream 'DEVICES > $MQTT_msgs' critical write error: write /data/12.blk: no space left on device",
      "[7] 2026/01/01 10:00:00.123456 [ERR] JetStream failed to store a msg on stream 'MESH > EVENTS': no space left on device",
      "[7] 2026/01/01 10:00:00.123456 [ERR] JetStream out of File resources, will be DISABLED",
      `[7] 2026/01/01 10:00:00.123456 [ERR] 10.0.0.7 - mid:5 - "[7] a b [ERR] JetStream stream 'x' critical write error: x" - refused`,
      "[7] 2026/01/01 10:00:00.123456 [WRN] JetStream file resource limits exceeded for account",
    ].join("\n");
    expect((await followed(`${lines}\n`, "broker")).writeErrors).toEqual([
      "no space left on device",
      "out of File resources",
    ]);
  });
});
