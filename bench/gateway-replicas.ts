/**
 * GET of a device through two gateways that share the load, against one, on the same mesh: what a request costs the
 * gateways and the mesh. `node bench/gateway-replicas.ts [seconds]`
 */
import { startMesh } from "@devmesh/testkit/mesh";
import { startReplica } from "@devmesh/testkit/replica";
import { loadHttp } from "./http-load.ts";
import { inTurns, report } from "./measure.ts";
import { createDevices } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 4) * 1000;
const rounds = 5;
const connections = 50;
// One key makes all requests.
const env = { RATE_MASTER: "1000000" };

await using mesh = await startMesh({ store: "sqlite", broker: "own", env });
await using replica = await startReplica(mesh.dataDir, "gateway", env);
const [device] = await createDevices(mesh, 1);
const { gateway: firstPid = 0, ...others } = await meshProcesses(mesh);
const first = { url: mesh.url, pid: firstPid };
const second = { url: replica.url, pid: replica.pid };

/** Loads gateways with the same number of connections in all. */
async function load(gateways: readonly { readonly url: string; readonly pid: number }[]) {
  const ofGateways = gateways.map(({ pid }) => pid);
  const ofMesh = [...ofGateways, ...Object.values(others)];
  const before = [await cpuSeconds(ofGateways), await cpuSeconds(ofMesh)] as const;
  const loads = await Promise.all(
    gateways.map(({ url }) =>
      loadHttp({
        url: `${url}/api/v2/devices/${device?.id}`,
        method: "GET",
        headers: { Authorization: `Bearer ${mesh.masterKey}` },
        connections: connections / gateways.length,
        forMs,
      }),
    ),
  );
  const requests = loads.reduce((sum, { latenciesMs }) => sum + latenciesMs.length, 0);
  return {
    "requests/s": loads.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0),
    "requests per CPU second of the gateways": requests / ((await cpuSeconds(ofGateways)) - before[0]),
    "requests per CPU second of the mesh": requests / ((await cpuSeconds(ofMesh)) - before[1]),
  };
}

const measured = await inTurns(rounds, {
  "two gateways": () => load([first, second]),
  "one gateway": () => load([first]),
});
console.log(`${connections} connections, median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
report(measured, { ours: "two gateways", peer: "one gateway" });
