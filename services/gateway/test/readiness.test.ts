import { startBroker, type TestBroker } from "@devmesh/testkit/broker";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort } from "@devmesh/testkit/free-port";
import { type SpawnedService, spawnService } from "@devmesh/testkit/service-process";
import { afterEach, expect, test } from "@jest/globals";

let broker: TestBroker;
let gateway: SpawnedService;
let ops: string;
let api: string;

/** Starts the gateway's own process; resolves once it answers on its operations port. */
async function startGateway(): Promise<void> {
  const [opsPort, port] = [await freePort(), await freePort()];
  ops = `http://127.0.0.1:${opsPort}`;
  api = `http://127.0.0.1:${port}/api/v2`;
  gateway = spawnService("gateway", {
    ...broker.environmentOf("gateway"),
    PORT: String(port),
    OPS_PORT: String(opsPort),
    LAME_DUCK_MS: "20000",
    LOG_LEVEL: "silent",
  });
  await eventually(async () => (await fetch(`${ops}/healthz`)).ok);
}

const readiness = async (): Promise<unknown> => (await fetch(`${ops}/readyz`)).json();

afterEach(async () => {
  await gateway.end("SIGKILL");
  await broker.stop();
});

test("a gateway that lost the broker stays ready and answers 503 itself", async () => {
  broker = await startBroker();
  await startGateway();
  await gateway.ready;
  expect(await readiness()).toEqual({ status: "ready", failed: [] });
  await broker.kill();
  const lost = /^devmesh_bus_connected\{.*\} 0$/m;
  await eventually(async () => lost.test(await (await fetch(`${ops}/metrics`)).text()));
  expect(await readiness()).toEqual({ status: "ready", failed: [] });
  const answer = await fetch(`${api}/devices`, { headers: { authorization: "Bearer none" } });
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).not.toBeNull();
});

test("a gateway is not ready before it was connected to the broker once, nor once it stops", async () => {
  broker = await startBroker();
  await broker.kill();
  await startGateway();
  expect(await readiness()).toEqual({ status: "not ready", failed: ["started"] });
  await broker.restart();
  await gateway.ready;
  expect(await readiness()).toEqual({ status: "ready", failed: [] });
  gateway.child.kill("SIGTERM");
  await eventually(async () => (await fetch(`${ops}/readyz`)).status === 503);
  expect(await readiness()).toEqual({ status: "not ready", failed: ["stopping"] });
});
