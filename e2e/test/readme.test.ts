import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, expect, test } from "@jest/globals";

const root = new URL("../../", import.meta.url);
let mesh: TestMesh;

beforeAll(async () => {
  mesh = await startMesh();
}, 60_000);
afterAll(async () => await mesh?.stop(), 60_000);

/** The shell block under a heading of the README. */
async function shellBlock(heading: string): Promise<string> {
  const readme = await readFile(new URL("README.md", root), "utf8");
  const section = readme.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0];
  const block = /```sh\n([\s\S]*?)```/.exec(section ?? "")?.[1];
  if (!block) throw new Error(`the README has no commands under ${heading}`);
  return block;
}

test("the commands under Try create a device, call it, set its shadow and read its data", async () => {
  const commands = (await shellBlock("Try"))
    .replaceAll("http://127.0.0.1:8080", mesh.url)
    .replaceAll(".data/master-key", `${mesh.dataDir}/master-key`);
  expect(commands.match(/^curl /gm)?.length).toBe(6);
  // Between the commands the simulated device needs a moment to react and to publish.
  const script = `set -e\n${commands.replace(/^(?=curl .*\/data)/m, "sleep 4\n")}`;
  const shell = spawn("bash", ["-c", script], {
    cwd: root,
    detached: true,
    env: {
      ...process.env,
      PORT: new URL(mesh.url).port,
      MQTT_PORT: new URL(mesh.mqttUrl).port,
      DATA_DIR: mesh.dataDir,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = text(shell.stdout);
  const [code] = await once(shell, "exit");
  // The device outlives its shell and holds the output open.
  if (shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
  // Answers of curl follow each other without a break.
  const answers = (await output).trim().replaceAll(/([\]}])(?=[[{\d])/g, "$1\n");
  expect([code, answers]).toEqual([0, expect.any(String)]);
  expect(answers).toContain('"token":"dt_');
  expect(answers).toContain('"app":"weather station"');
  expect(answers).toMatch(/^5[[{]?/m);
  expect(answers).toContain('"topic":"db/pump-1/');
  expect(answers).toContain('"reported":{');
}, 60_000);
