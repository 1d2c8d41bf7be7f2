import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import { openOutbox } from "../src/transport.outbox.ts";
import { MailDelayed } from "../src/transport.ts";
import { exampleMail, mailTransportSuite } from "./mail-transport.suite.ts";

mailTransportSuite("the outbox", async () => {
  const folder = await tempFolder();
  return {
    transport: await openOutbox(folder.path),
    arrived: async () => {
      const names = (await readdir(folder.path)).sort();
      return await Promise.all(names.map((name) => readFile(join(folder.path, name), "utf8")));
    },
    [Symbol.asyncDispose]: () => folder.remove(),
  };
});

describe("the outbox", () => {
  const signal = AbortSignal.timeout(30_000);

  test("names files so that they sort by the time the mails were asked for", async () => {
    await using folder = await tempFolder();
    const outbox = await openOutbox(folder.path);
    await outbox.send(exampleMail({ id: "a", queuedAt: new Date("2026-01-02T00:00:00.000Z") }), signal);
    await outbox.send(exampleMail({ id: "b", queuedAt: new Date("2026-01-01T00:00:00.000Z") }), signal);
    await outbox.send(exampleMail({ id: "c", queuedAt: new Date("2026-01-02T00:00:00.000Z") }), signal);
    expect((await readdir(folder.path)).sort()).toEqual([
      "2026-01-01T00-00-00.000Z-b.eml",
      "2026-01-02T00-00-00.000Z-a.eml",
      "2026-01-02T00-00-00.000Z-c.eml",
    ]);
  });

  test("lets nobody but the owner read the folder and the mails", async () => {
    await using folder = await tempFolder();
    const path = join(folder.path, "data", "outbox");
    const outbox = await openOutbox(path);
    await outbox.send(exampleMail({ id: "a" }), signal);
    const [name = ""] = await readdir(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect((await stat(join(path, name))).mode & 0o777).toBe(0o600);
  });

  test("replaces the first copy of a mail that is sent again after a crash", async () => {
    await using folder = await tempFolder();
    const mail = exampleMail({ id: "a" });
    await (await openOutbox(folder.path)).send(mail, signal);
    await writeFile(join(folder.path, ".2026-01-01T12-00-00.000Z-a.eml.part"), "half a m", { mode: 0o600 });
    await (await openOutbox(folder.path)).send(mail, signal);
    expect(await readdir(folder.path)).toEqual(["2026-01-01T12-00-00.000Z-a.eml"]);
  });

  test("reports a folder that went away as a matter of time", async () => {
    await using folder = await tempFolder();
    const path = join(folder.path, "outbox");
    const outbox = await openOutbox(path);
    await folder.remove();
    await expect(outbox.send(exampleMail(), signal)).rejects.toBeInstanceOf(MailDelayed);
  });

  test("cannot be opened where a file stands", async () => {
    await using folder = await tempFolder();
    const path = join(folder.path, "outbox");
    await writeFile(path, "");
    await expect(openOutbox(path)).rejects.toThrow(/EEXIST|ENOTDIR/);
  });

  test("never takes a path out of a mail's id", async () => {
    await using folder = await tempFolder();
    const outbox = await openOutbox(folder.path);
    await expect(outbox.send(exampleMail({ id: "../x" }), signal)).rejects.toThrow(TypeError);
  });
});
