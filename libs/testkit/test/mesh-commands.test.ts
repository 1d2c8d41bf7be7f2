import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "../src/eventually.ts";
import { repository, startMesh, type TestMesh } from "../src/mesh.ts";

/** A command of `package.json`, run in a folder of the repository against the mesh of a data folder. */
interface Command {
  readonly process: ChildProcess;
  output(): string;
  /** Resolves with the exit code. */
  ended(): Promise<number | null>;
}

const started: ChildProcess[] = [];

function command(script: string, args: readonly string[], dataDir: string, folder = "."): Command {
  const child = spawn(process.execPath, [join(repository, "scripts", script), ...args], {
    cwd: join(repository, folder),
    env: { ...process.env, DATA_DIR: dataDir },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const ended = once(child, "close").then(([code]) => code);
  return { process: child, output: () => output, ended: () => ended };
}

describe("beside a mesh that runs without its data service", () => {
  let mesh: TestMesh;
  beforeAll(async () => {
    mesh = await startMesh({ args: ["--without", "data"] });
  }, 120_000);
  afterAll(async () => {
    for (const child of started) child.kill();
    await mesh?.stop();
  }, 90_000);

  test("npm run device runs a device that is made, answers calls, and leaves at Ctrl-C", async () => {
    const device = command("device.mjs", ["lamp-7", "--kind", "lamp"], mesh.dataDir);
    await eventually(() => device.output() === "lamp-7 is connected\n", { withinMs: 20_000 });
    const call = () => mesh.http("/api/v2/devices/lamp-7/rpc/Led.Set", { body: { on: true } });
    // Its presence is told by an event of the broker.
    await eventually(async () => (await call()).json?.on === true);
    device.process.kill("SIGTERM");
    expect(await device.ended()).toBe(0);
    await eventually(async () => (await call()).status === 409);
    const again = command("device.mjs", ["lamp-7"], mesh.dataDir);
    await eventually(() => again.output() === "lamp-7 is connected\n", { withinMs: 20_000 });
    again.process.kill("SIGTERM");
    await again.ended();
  }, 60_000);

  test("npm run dev runs the service that is missing until it is stopped", async () => {
    const records = () => mesh.http("/api/v2/data");
    expect((await records()).status).toBe(503);
    const data = command("dev.mjs", [], mesh.dataDir, "services/data");
    await eventually(async () => (await records()).status === 200, { withinMs: 30_000, everyMs: 100 });
    data.process.kill("SIGTERM");
    await data.ended();
    expect((await records()).status).toBe(503);
  }, 90_000);

  test("npm run dev refuses a service whose store the mesh holds, and a folder that is no service's", async () => {
    const keys = command("dev.mjs", [], mesh.dataDir, "services/keys");
    expect(await keys.ended()).toBe(1);
    expect(keys.output()).toBe(
      "The mesh runs keys already, and an SQLite file serves one process: start the mesh with npm start -- --without keys, or give both a MongoDB by STORE_URL.\n",
    );
    const docs = command("dev.mjs", [], mesh.dataDir, "docs");
    expect(await docs.ended()).toBe(1);
    expect(docs.output()).toBe("Run it for one service: npm run dev -w services/NAME\n");
  });
});

describe("without a mesh", () => {
  const nowhere = "/nonexistent/devmesh";

  test.each([
    ["device.mjs", ["lamp-7"], "."],
    ["dev.mjs", [], "services/data"],
  ])("%s says so in one sentence", async (script, args, folder) => {
    const { ended, output } = command(script, args, nowhere, folder);
    expect(await ended()).toBe(1);
    expect(output()).toBe(
      `No mesh runs with the data folder ${nowhere}: start one with npm start, or set DATA_DIR.\n`,
    );
  });

  test.each([[[]], [["a", "b"]], [["no/id"]], [["lamp-7", "--kind", "toaster"]], [["--nonsense"]]])(
    "device.mjs %j gets the usage and exit code 2",
    async (args) => {
      const { ended, output } = command("device.mjs", args, nowhere);
      expect(await ended()).toBe(2);
      expect(output()).toContain("Usage: npm run device");
    },
  );
});
