import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startBroker, type TestBroker } from "@devmesh/testkit/broker";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort } from "@devmesh/testkit/free-port";
import { afterEach, expect, test } from "@jest/globals";

let broker: TestBroker;
let gateway: ChildProcess;
/** Resolves with the gateway's message that it is ready. */
let started: Promise<unknown>;
let ops: string;
let api: string;

/** Starts the gateway's own process; resolves once it answers on its operations port. */
async function startGateway(): Promise<void> {
  const [opsPort, port] = [await freePort(), await freePort()];
  ops = `http://127.0.0.1:${opsPort}`;
  api = `http://127.0.0.1:${port}/api/v2`;
  gateway = fork(fileURLToPath(new URL("../src/main.ts", import.meta.url)), {
    env: {
      PATH: process.env.PATH,
      ...broker.environmentOf("gateway"),
      PORT: String(port),
      OPS_PORT: String(opsPort),
      LAME_DUCK_MS: "20000",
      LOG_LEVEL: "silent",
    },
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  started = once(gateway, "message");
  await eventually(async () => (await fetch(`${ops}/healthz`)).ok);
}

const readiness = async (): Promise<unknown> => (await fetch(`${ops}/readyz`)).json();

afterEach(async () => {
  gateway.kill("SIGKILL");
  await broker.stop();
});

test("a gateway that lost the broker stays ready and answers 503 itself", async () => {
  broker = await startBroker();
  await startGateway();
  await started;
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
  await started;
  expect(await readiness()).toEqual({ status: "ready", failed: [] });
  gateway.kill("SIGTERM");
  await eventually(async () => (await fetch(`${ops}/readyz`)).status === 503);
  expect(await readiness()).toEqual({ status: "not ready", failed: ["stopping"] });
});
