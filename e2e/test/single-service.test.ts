import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { mesh as services } from "@devmesh/contracts/mesh";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { type LaunchedMesh, launchMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { connectNats, type NatsTestConnection } from "@devmesh/testkit/nats-connection";
import { startProcess, type TestProcess } from "@devmesh/testkit/process";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { z } from "zod";
import { knownContracts } from "../src/old-client/recording.ts";
import { restClient } from "../src/rest-client.ts";

const ServiceInfo = z.looseObject({
  version: z.string(),
  endpoints: z.array(z.looseObject({ subject: z.string() })),
});

/** A mesh of which nothing runs but the broker; each service is started beside it by the command of README.md. */
let mesh: LaunchedMesh;
let operator: NatsTestConnection;
const started: TestProcess[] = [];
const names = Object.keys(services);

beforeAll(async () => {
  mesh = await launchMesh({ args: names.flatMap((name) => ["--without", name]) });
  await mesh.ready();
  const { passwords } = JSON.parse(await readFile(join(mesh.dataDir, "installation.json"), "utf8"));
  operator = await connectNats({
    port: mesh.ports.nats,
    user: "operator.mesh",
    password: passwords.operator,
    inbox: "_INBOX.operator",
  });
}, 120_000);
afterAll(async () => {
  await operator?.close();
  await Promise.all(started.map((child) => child.end()));
  await mesh?.stop();
});

/** `npm run dev -w services/NAME`; what it prints is part of the error when it does not come up. */
async function runOneService(name: string): Promise<void> {
  const child = startProcess("npm", ["run", "dev", "-w", `services/${name}`], {
    cwd: repository,
    env: { ...process.env, DATA_DIR: mesh.dataDir },
  });
  started.push(child);
  await eventually(() => operator.request(`$SRV.PING.${name}`, "", 1_000), { withinMs: 150_000 }).catch(
    (cause: Error) => {
      throw new Error(`${name} did not come up:\n${child.output()}`, { cause });
    },
  );
}

// The last first: none may need that those it calls are there already.
test.each([...names].reverse())(
  "%s starts by itself beside a mesh that runs",
  async (name) => {
    await expect(operator.request(`$SRV.PING.${name}`)).rejects.toThrow("nobody answers");
    await runOneService(name);
  },
  180_000,
);

test.each(names)("%s tells the version and the methods that its committed surface has", async (name) => {
  const surface = (await knownContracts(repository)).find(({ service }) => service === name)?.surface;
  const { version, endpoints } = ServiceInfo.parse(
    JSON.parse((await operator.request(`$SRV.INFO.${name}`)).payload),
  );
  expect(version).toBe(`${surface?.version ?? 1}.0.0`);
  expect(endpoints.map(({ subject }) => subject).sort()).toEqual(
    Object.values(surface?.methods ?? {})
      .map(({ subject }) => subject)
      .sort(),
  );
});

test("services that were started one by one are a whole mesh", async () => {
  const masterKey = (await readFile(join(mesh.dataDir, "master-key"), "utf8")).trim();
  const master = restClient(mesh.url, masterKey);
  const created = await eventually(async () => {
    const answer = await master.post("devices", { id: "lamp" });
    return answer.status === 201 ? answer.json : null;
  });
  const device = await eventually(() =>
    connectMqttDevice({ url: mesh.mqttUrl, id: "lamp", token: created.token }),
  );
  await device.answerRpc(({ params }) => ({ result: params }));
  await device.publish("db/lamp/temp", "21.5", 1);
  await eventually(async () => (await master.post("devices/lamp/rpc/Echo", [1])).text === "[1]");
  await eventually(async () => (await master.get("data")).json?.[0]?.message === "21.5");
  await device.leave();
});
