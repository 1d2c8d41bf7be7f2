/**
 * GET of a 1 KB device through a whole mesh, against the same work with Express and one NATS request: a key from a
 * cache with expiry, SQLite read by id, validated input, an access log. `node bench/device-read.ts [seconds]`
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { startMesh, type TestMesh, type TestMeshOptions } from "@devmesh/testkit/mesh";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import type { Child } from "./child.ts";
import { loadHttp } from "./http-load.ts";
import { inTurns, median, report } from "./measure.ts";
import { startMeshBefore } from "./mesh-before.ts";
import { withoutRateLimits } from "./mesh-tenant.ts";
import { installPeers, startPeer } from "./peer.ts";
import { digestOf } from "./peers/key-check.ts";
import { createPeerStore } from "./peers/store.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 3) * 1000;
const rounds = 5;
const connections = 100;

await installPeers();
await using folder = await tempFolder();
const options: TestMeshOptions = { store: "sqlite", broker: "own", env: withoutRateLimits };
await using mesh = await startMesh(options);
const startBefore = await startMeshBefore();
await using meshBefore = (await startBefore?.(options)) ?? null;
const path = "/api/v2/devices/pump";
const device = {
  id: "pump",
  name: "Pump 7, hall 2",
  shadow: {
    state: {
      desired: {
        app: { target: 21.5, schedule: "weekdays 06:00-22:00", note: "serviced on the first. ".repeat(8) },
      },
    },
  },
};
for (const { http } of [mesh, ...(meshBefore ? [meshBefore] : [])]) {
  const { status, text } = await http("/api/v2/devices", { body: device });
  if (status !== 201) throw new Error(`creating the device: ${status} ${text}`);
}
const { text: document } = await mesh.http(path);
console.log(`${Buffer.byteLength(document)} bytes a device`);

const storePath = join(folder.path, "peers.db");
createPeerStore(storePath, JSON.parse(document), digestOf(mesh.masterKey));
await using broker = await startNatsServer();
await using logs = await open(join(folder.path, "gateways.log"), "a");
const env = {
  NATS_URL: broker.url,
  NATS_USER: undefined,
  NATS_PASSWORD: undefined,
  BENCH_STORE: storePath,
};
const start = (name: string) => startPeer(name, env, logs.fd);

await using natsService = start("nats-service");
await natsService.ready;
await using express = start("express-gateway");

/** Loads one chain of processes. */
async function load(url: string, pids: readonly number[], key = mesh.masterKey) {
  const before = await cpuSeconds(pids);
  const { requestsPerSecond, latenciesMs } = await loadHttp({
    url: `${url}${path}`,
    method: "GET",
    headers: { Authorization: `Bearer ${key}` },
    connections,
    forMs,
  });
  return {
    "requests/s": requestsPerSecond,
    [perCpuSecond]: latenciesMs.length / ((await cpuSeconds(pids)) - before),
    "p50, ms": median(latenciesMs),
  };
}

/** A gateway and a service of a peer, which must answer the same bytes and refuse another key. */
async function peer(gateway: Child, service: Child) {
  const url = `http://127.0.0.1:${await gateway.ready}`;
  const answer = await fetch(`${url}${path}`, {
    headers: { Authorization: `Bearer ${mesh.masterKey}` },
  });
  if ((await answer.text()) !== document) throw new Error(`another answer: ${answer.status}`);
  const refused = await fetch(`${url}${path}`, { headers: { Authorization: "Bearer wrong" } });
  if (refused.status !== 401) throw new Error(`a wrong key: ${refused.status}`);
  return () => load(url, [gateway.pid, service.pid, broker.pid]);
}

async function wholeMesh(mesh: TestMesh) {
  const pids = Object.values(await meshProcesses(mesh));
  return () => load(mesh.url, pids, mesh.masterKey);
}

const ours = "mesh";
const before = "mesh before";
const perCpuSecond = "requests per CPU second of all processes";
const expressAndNats = "Express and NATS";
const contenders: Record<string, () => Promise<Record<string, number>>> = {
  [ours]: await wholeMesh(mesh),
  ...(meshBefore && { [before]: await wholeMesh(meshBefore) }),
  [expressAndNats]: await peer(express, natsService),
};
const measured = await inTurns(rounds, contenders);
console.log(`${connections} connections, median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
if (meshBefore) report(measured, { ours, peer: before });
report(measured, { ours, peer: expressAndNats, goals: { [perCpuSecond]: { ratio: 0.75 } } });
