/**
 * GET of a 1 KB device through a whole mesh, against the same work with frameworks: a key from a cache with expiry,
 * SQLite read by id, validated input, a line in the access log. `node bench/device-read.ts [seconds]`
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { startMesh } from "@devmesh/testkit/mesh";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { type Child, startChild } from "./child.ts";
import { loadHttp } from "./http-load.ts";
import { inTurns, median, report } from "./measure.ts";
import { installPeers } from "./peers/install.ts";
import { digestOf } from "./peers/key-check.ts";
import { createPeerStore } from "./peers/store.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 3) * 1000;
const rounds = 5;
const connections = 100;

await installPeers();
await using folder = await tempFolder();
await using mesh = await startMesh({ store: "sqlite", broker: "own", env: { RATE_MASTER: "1000000" } });
const path = "/api/v2/devices/pump";
const created = await mesh.http("/api/v2/devices", {
  body: {
    id: "pump",
    name: "Pump 7, hall 2",
    shadow: {
      state: {
        desired: {
          app: { target: 21.5, schedule: "weekdays 06:00-22:00", note: "serviced on the first. ".repeat(8) },
        },
      },
    },
  },
});
if (created.status !== 201) throw new Error(`creating the device: ${created.status} ${created.text}`);
const { text: document } = await mesh.http(path);
console.log(`${Buffer.byteLength(document)} bytes a device`);

const storePath = join(folder.path, "peers.db");
createPeerStore(storePath, JSON.parse(document), digestOf(mesh.masterKey));
await using broker = await startNatsServer();
await using logs = await open(join(folder.path, "gateways.log"), "a");
const env = {
  NODE_ENV: "production",
  NATS_URL: broker.url,
  NATS_USER: undefined,
  NATS_PASSWORD: undefined,
  BENCH_STORE: storePath,
};
const start = (name: string, more: NodeJS.ProcessEnv = {}) =>
  startChild(import.meta.resolve(`./peers/${name}.ts`), { ...env, ...more }, logs.fd);

await using natsService = start("nats-service");
await using nestService = start("nest-service");
await using moleculerService = start("moleculer-service");
await Promise.all([natsService.ready, nestService.ready, moleculerService.ready]);
await using express = start("express-gateway");
await using fastify = start("fastify-gateway");
await using nestOnExpress = start("nest-gateway", { BENCH_PLATFORM: "express" });
await using nestOnFastify = start("nest-gateway", { BENCH_PLATFORM: "fastify" });
await using moleculer = start("moleculer-gateway");

const headers = { Authorization: `Bearer ${mesh.masterKey}` };

/** Loads one chain of processes. */
async function load(url: string, pids: readonly number[]) {
  const before = await cpuSeconds(pids);
  const { requestsPerSecond, latenciesMs } = await loadHttp({
    url: `${url}${path}`,
    method: "GET",
    headers,
    connections,
    forMs,
  });
  return {
    "requests/s": requestsPerSecond,
    "requests per CPU second of all processes": latenciesMs.length / ((await cpuSeconds(pids)) - before),
    "p50, ms": median(latenciesMs),
  };
}

/** A gateway and a service of a peer, which must answer the same bytes and refuse another key. */
async function peer(gateway: Child, service: Child) {
  const url = `http://127.0.0.1:${await gateway.ready}`;
  const answer = await fetch(`${url}${path}`, { headers });
  if ((await answer.text()) !== document) throw new Error(`another answer: ${answer.status}`);
  const refused = await fetch(`${url}${path}`, { headers: { Authorization: "Bearer wrong" } });
  if (refused.status !== 401) throw new Error(`a wrong key: ${refused.status}`);
  return () => load(url, [gateway.pid, service.pid, broker.pid]);
}

const ours = "mesh";
const frameworks = {
  Moleculer: await peer(moleculer, moleculerService),
  "NestJS on Express": await peer(nestOnExpress, nestService),
  "NestJS on Fastify": await peer(nestOnFastify, nestService),
};
const raw = {
  "Fastify and NATS": await peer(fastify, natsService),
  "Express and NATS": await peer(express, natsService),
};
const measured = await inTurns(rounds, {
  [ours]: async () => load(mesh.url, Object.values(await meshProcesses(mesh))),
  ...frameworks,
  ...raw,
});
console.log(`${connections} connections, median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
for (const name of Object.keys(frameworks) as (keyof typeof frameworks)[])
  report(measured, {
    ours,
    peer: name,
    goals: { "requests per CPU second of all processes": { ratio: 1.2 } },
  });
for (const name of Object.keys(raw) as (keyof typeof raw)[])
  report(measured, {
    ours,
    peer: name,
    goals: { "requests per CPU second of all processes": { ratio: 0.75 } },
  });
