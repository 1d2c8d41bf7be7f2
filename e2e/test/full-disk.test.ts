import { execFile } from "node:child_process";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { startSender } from "../src/acknowledged-load.ts";
import { asMaster, enrolDevice } from "../src/tenant.ts";

const run = promisify(execFile);

/** A small disk of the test's own; null where mounting one is not allowed. */
async function smallDisk(): Promise<(AsyncDisposable & { readonly path: string }) | null> {
  const folder = await tempFolder();
  try {
    await run("mount", ["-t", "tmpfs", "-o", "size=120m,mode=0700", "tmpfs", folder.path]);
  } catch {
    await folder.remove();
    return null;
  }
  return {
    path: folder.path,
    async [Symbol.asyncDispose]() {
      await run("umount", ["--lazy", folder.path]);
      await folder.remove();
    },
  };
}

const probe = await smallDisk();
await probe?.[Symbol.asyncDispose]();
const withSmallDisk = probe === null ? test.skip : test;

/** Takes all the room that is left. */
async function fill(path: string): Promise<void> {
  const file = await open(path, "a");
  try {
    for (const bytes of [1024 * 1024, 4_096]) {
      const block = Buffer.alloc(bytes, 1);
      await expect(
        (async () => {
          for (;;) await file.appendFile(block);
        })(),
      ).rejects.toThrow("ENOSPC");
    }
  } finally {
    await file.close();
  }
}

const patience = { withinMs: 90_000, everyMs: 500 };

/** The readiness checks of a service that fail now. */
async function failedChecks(
  mesh: TestMesh,
  service: "data" | "rpc-bridge" | "keys" | "devices",
): Promise<string[]> {
  const ops = (await mesh.parts()).services[service]?.ops;
  return ((await (await fetch(`${ops}/readyz`)).json()) as { failed: string[] }).failed;
}

/** The numbers that a sender's device has stored, in order. */
async function storedNumbers(mesh: TestMesh, topic: string): Promise<number[]> {
  const { text } = await asMaster(mesh).get(`data?filter=${topic}`, {
    headers: { accept: "application/x-ndjson" },
  });
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => Number(JSON.parse(line).message));
}

withSmallDisk(
  "a full disk turns readiness red, and with room again everything goes on, without losing what was acknowledged",
  async () => {
    await using disk = await smallDisk();
    await using mesh = await startMesh({ dataDir: disk?.path ?? "", store: "sqlite", broker: "own" });
    const meter = await enrolDevice(mesh, "meter");
    await using bell = await (await enrolDevice(mesh, "bell")).connect();
    await bell.answerRpc(({ params }) => ({ result: params }));
    await using sender = startSender(meter, [mesh.mqttUrl]);
    await eventually(() => sender.acknowledged.size > 100);

    const filler = join(mesh.dataDir, "filler");
    const failing = async () => {
      // What was deleted meanwhile, such as a write-ahead log, makes room again.
      await fill(filler);
      return [await failedChecks(mesh, "data"), await failedChecks(mesh, "rpc-bridge")];
    };
    await eventually(
      async () => (await failing()).every((failed) => failed.includes("broker storage")),
      patience,
    );
    expect(mesh.output()).toContain(
      "nats-server could not write (no space left on device); it is restarted when",
    );
    for (const service of ["data", "rpc-bridge"])
      expect(mesh.output()).toContain(`${service} error: the broker does not store what devices publish`);
    expect((await asMaster(mesh).post("devices", { id: "late" })).status).toBe(503);
    expect((await asMaster(mesh).post("keys", { device_id: "meter" })).status).toBe(503);
    expect((await asMaster(mesh).post("devices/bell/rpc/Echo", { still: "here" })).status).toBe(200);
    expect(mesh.output()).not.toContain("There is room");
    const reached = sender.acknowledged.size;

    await rm(filler);
    await eventually(() => sender.acknowledged.size > reached + 100, patience);
    expect(mesh.output()).toContain("There is room: nats-server is restarted.");
    for (const service of ["data", "rpc-bridge", "keys", "devices"] as const)
      await eventually(async () => (await failedChecks(mesh, service)).length === 0, patience);
    await enrolDevice(mesh, "late");
    await sender.stop();
    const stored = await eventually(async () => {
      const numbers = await storedNumbers(mesh, sender.topic);
      const have = new Set(numbers);
      return [...sender.acknowledged].every((number) => have.has(number)) ? numbers : null;
    }, patience);
    expect(new Set(stored).size).toBe(stored.length);
  },
  300_000,
);
