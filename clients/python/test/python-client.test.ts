import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { devNull } from "node:os";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort } from "@devmesh/testkit/free-port";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startProcess } from "@devmesh/testkit/process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, expect, test } from "@jest/globals";

const folder = resolve(import.meta.dirname, "..");
const run = promisify(execFile);
const versionOf = () => run("python3", ["-c", "import sys; print(sys.version_info >= (3, 11))"]);
const hasPython = await versionOf().then(
  ({ stdout }) => stdout.trim() === "True",
  () => false,
);
const withPython = hasPython ? test : test.skip;

/** Libraries of examples, and the checker of types; pip puts them into a folder of this run. */
const wanted = ["standardwebhooks==1.1.0", "pandas==3.1.1", "mypy==2.4.1"];
const libraries = await tempFolder();
const install = ["-m", "pip", "install", "--quiet", "--target", libraries.path, ...wanted];
const withLibraries =
  hasPython &&
  (await run("python3", install).then(
    () => true,
    () => false,
  ))
    ? test
    : test.skip;

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
  await libraries.remove();
});

/** What the README shows. */
async function examplesOf(): Promise<string[]> {
  const readme = await readFile(resolve(folder, "README.md"), "utf8");
  return [...readme.matchAll(/```python\n([\s\S]*?)```/g)].map(([, example = ""]) => example);
}
const isReceiver = (example: string) => example.includes("standardwebhooks");

const environment = () => ({
  ...process.env,
  DEVMESH_URL: mesh.url,
  DEVMESH_KEY: mesh.masterKey,
  PYTHONPATH: `${folder}:${libraries.path}`,
  PYTHONDONTWRITEBYTECODE: "1",
});

withPython("the client passes its own tests against a running mesh", async () => {
  const { stderr } = await run("python3", ["-m", "unittest", "-v", "test_client"], {
    cwd: import.meta.dirname,
    env: environment(),
  });
  expect(stderr).toMatch(/^Ran 15 tests .*\n\nOK$/m);
});

withLibraries(
  "the client passes mypy in its strict mode",
  async () => {
    const { stdout } = await run("python3", ["-m", "mypy", "--strict", "--cache-dir", devNull, "devmesh"], {
      cwd: folder,
      env: environment(),
    });
    expect(stdout).toMatch(/^Success: no issues found in \d+ source files$/m);
  },
  120_000,
);

withPython("the examples of the README run as they are", async () => {
  const examples = (await examplesOf()).filter((example) => !isReceiver(example));
  expect(examples).toHaveLength(2);
  for (const example of examples) {
    const text = example.replace("http://127.0.0.1:8080", mesh.url);
    await using program = startProcess("python3", ["-u", "-c", text], {
      env: environment(),
    });
    await eventually(async () => {
      await pump.publish("db/pump-1/temperature", '{"celsius":21.5}', 1);
      return program.output().includes("pump-1/temperature {'celsius': 21.5}");
    });
    expect(program.output()).toMatch(/^5$/m);
    await program.end("SIGKILL");
  }
});

withLibraries("the example for pandas makes a table of a series", async () => {
  const guide = await readFile(resolve(folder, "../../docs/operations/grafana.md"), "utf8");
  const [, example = ""] = /```python\n([\s\S]*?)```/.exec(guide) ?? [];
  await pump.publish("db/pump-1/temp", '{"celsius":21.5}', 1);
  await eventually(async () => {
    const path = "/api/v2/series?device_id=pump-1&topic=temp&pointer=/celsius";
    return (await mesh.http(path)).json.series[0]?.points.length === 1;
  });
  const text = example.replace("http://127.0.0.1:8080", mesh.url);
  const { stdout } = await run("python3", ["-c", text], { env: environment() });
  expect(stdout).toMatch(/^avg +21\.5\nmin +21\.5\nmax +21\.5$/m);
});

withLibraries(
  "the receiver of the README verifies what a webhook sends, and refuses anybody else",
  async () => {
    const [example = ""] = (await examplesOf()).filter(isReceiver);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const body = { url, events: ["rpc.out.alarm"] };
    const { id, secret } = (await mesh.http("/api/v2/webhooks", { body })).json;
    const first = secret;
    const rotated = (await mesh.http(`/api/v2/webhooks/${id}/secret`, { body: {} })).json.secret;
    for (const [round, one] of [first, rotated].entries()) {
      const text = example.replace("8000", String(port));
      await using program = startProcess("python3", ["-u", "-c", text], {
        env: { ...environment(), WEBHOOK_SECRET: one },
      });
      await eventually(() => fetch(url, { method: "POST", body: "{}" }).then(({ status }) => status === 401));
      await pump.publish("pump-1/event/alarm", JSON.stringify({ round }), 1);
      await eventually(() => program.output().includes(`devmesh.rpc.out.alarm {'round': ${round}}`));
      expect((await mesh.http(`/api/v2/webhooks/${id}/test`, { body: {} })).json.status).toBe(204);
      await program.end("SIGKILL");
    }
    await mesh.http(`/api/v2/webhooks/${id}`, { method: "DELETE" });
  },
);
