import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startProcess } from "@devmesh/testkit/process";
import { afterAll, beforeAll, expect, test } from "@jest/globals";

const folder = resolve(import.meta.dirname, "..");
const run = promisify(execFile);
const versionOf = () => run("python3", ["-c", "import sys; print(sys.version_info >= (3, 11))"]);
const hasPython = await versionOf().then(
  ({ stdout }) => stdout.trim() === "True",
  () => false,
);
const withPython = hasPython ? test : test.skip;

let mesh: TestMesh;
let pump: MqttDevice;
beforeAll(async () => {
  if (hasPython) await run("python3", [resolve(folder, "generate.py")]);
  mesh = await startMesh();
  const { token } = (await mesh.http("/api/v2/devices", { body: { id: "pump-1" } })).json;
  pump = await connectMqttDevice({ url: mesh.mqttUrl, id: "pump-1", token });
  await pump.answerRpc(({ method, params }) =>
    method === "sum" && Array.isArray(params)
      ? { result: params.reduce<number>((sum, one) => sum + Number(one), 0) }
      : { error: { code: 404 } },
  );
  for (let number = 0; number < 10; number++) await pump.publish("db/pump-1/numbers", String(number), 1);
  await eventually(async () => (await mesh.http("/api/v2/data")).json.length === 10);
}, 120_000);
afterAll(async () => {
  await pump?.leave();
  await mesh?.stop();
}, 60_000);

withPython("the client passes its own tests against a running mesh", async () => {
  const env = { ...process.env, DEVMESH_URL: mesh.url, DEVMESH_KEY: mesh.masterKey, PYTHONPATH: folder };
  const { stderr } = await run("python3", ["-m", "unittest", "-v", "test_client"], {
    cwd: import.meta.dirname,
    env: { ...env, PYTHONDONTWRITEBYTECODE: "1" },
  });
  expect(stderr).toMatch(/^Ran 12 tests .*\n\nOK$/m);
});

withPython(
  "the examples of the README run as they are",
  async () => {
    const readme = await readFile(resolve(folder, "README.md"), "utf8");
    const examples = [...readme.matchAll(/```python\n([\s\S]*?)```/g)].map(([, example = ""]) => example);
    expect(examples).toHaveLength(2);
    for (const example of examples) {
      const text = example.replace("http://127.0.0.1:8080", mesh.url);
      await using program = startProcess("python3", ["-u", "-c", text], {
        env: {
          ...process.env,
          DEVMESH_KEY: mesh.masterKey,
          PYTHONPATH: folder,
          PYTHONDONTWRITEBYTECODE: "1",
        },
      });
      await eventually(async () => {
        await pump.publish("db/pump-1/temperature", '{"celsius":21.5}', 1);
        return program.output().includes("pump-1/temperature {'celsius': 21.5}");
      });
      expect(program.output()).toMatch(/^5$/m);
      await program.end("SIGKILL");
    }
  },
  60_000,
);
