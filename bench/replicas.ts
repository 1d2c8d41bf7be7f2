/**
 * Two replicas of a service against one on the same mesh: two gateways, two bridges, and over MongoDB (`MONGODB_URL`)
 * two `devices`. `node bench/replicas.ts [seconds]`
 */
import type { ServiceName } from "@devmesh/contracts/mesh";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { type Replica, startReplica } from "@devmesh/testkit/replica";
import { type HttpLoadOptions, loadHttp } from "./http-load.ts";
import { inTurns, report } from "./measure.ts";
import { startEchoDevice, withoutRateLimits } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 4) * 1000;
const rounds = 3;
const connections = 50;

const path = "/api/v2/devices/bench-0";
const read = { unit: "requests", path, method: "GET" } as const;
const call = { unit: "calls", path: `${path}/rpc/Echo`, method: "POST", body: '{"pin":12}' } as const;
type Work = typeof read | typeof call;

/** What two replicas of a service do, and what one does. */
async function compare(service: ServiceName, work: Work, store: "sqlite" | "mongodb"): Promise<void> {
  await using mesh = await startMesh({ store, broker: "own", env: withoutRateLimits });
  await using _echo = await startEchoDevice(mesh);
  const [ours, peer] = [`two ${service}`, `one ${service}`];
  const measured = await inTurns(rounds, {
    [ours]: async () => {
      const { storeUrl } = mesh;
      await using replica = await startReplica(mesh.dataDir, service, {
        ...withoutRateLimits,
        ...(storeUrl && { STORE_URL: storeUrl }),
      });
      return await load(mesh, work, replica);
    },
    [peer]: () => load(mesh, work),
  });
  report(measured, { ours, peer });
}

async function load(mesh: TestMesh, { unit, path, ...request }: Work, replica?: Replica) {
  const pids = [...Object.values(await meshProcesses(mesh)), ...(replica ? [replica.pid] : [])];
  const gateways = replica?.service === "gateway" ? [mesh.url, replica.url] : [mesh.url];
  const run = async (forMs: number) => {
    const options: Omit<HttpLoadOptions, "url"> = {
      ...request,
      headers: { Authorization: `Bearer ${mesh.masterKey}` },
      connections: connections / gateways.length,
      forMs,
    };
    return await Promise.all(gateways.map((url) => loadHttp({ ...options, url: `${url}${path}` })));
  };
  // The replica has just started.
  await run(forMs / 2);
  const before = await cpuSeconds(pids);
  const loads = await run(forMs);
  const requests = loads.reduce((sum, { latenciesMs }) => sum + latenciesMs.length, 0);
  return {
    [`${unit}/s`]: loads.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0),
    [`${unit} per CPU second of the mesh`]: requests / ((await cpuSeconds(pids)) - before),
  };
}

console.log(`${connections} connections, median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
await compare("gateway", read, "sqlite");
await compare("rpc-bridge", call, "sqlite");
if (process.env.MONGODB_URL) await compare("devices", read, "mongodb");
else console.log("two devices: skipped, no MONGODB_URL");
