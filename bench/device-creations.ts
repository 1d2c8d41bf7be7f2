/**
 * Devices created over REST on a whole mesh with SQLite, 50 in flight, against a rate. `node bench/device-creations.ts
 * [seconds]`
 */
import { startMesh, type TestMesh, type TestMeshOptions } from "@devmesh/testkit/mesh";
import { loadHttp } from "./http-load.ts";
import { type Figure, inTurns, median, reportFigures } from "./measure.ts";
import { startMeshBefore } from "./mesh-before.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 3) * 1000;
const rounds = 5;
const connections = 50;

// One key makes all requests.
const options: TestMeshOptions = { store: "sqlite", broker: "own", env: { RATE_MASTER: "1000000" } };
await using mesh = await startMesh(options);
const startBefore = await startMeshBefore();
await using meshBefore = (await startBefore?.(options)) ?? null;

async function creationsOn(mesh: TestMesh) {
  const pids = Object.values(await meshProcesses(mesh));
  return async () => {
    const before = await cpuSeconds(pids);
    const { requestsPerSecond, latenciesMs } = await loadHttp({
      url: `${mesh.url}/api/v2/devices`,
      method: "POST",
      headers: { Authorization: `Bearer ${mesh.masterKey}` },
      body: "{}",
      status: 201,
      connections,
      forMs,
    });
    return {
      "creations/s": requestsPerSecond,
      "creations per CPU second of the mesh": latenciesMs.length / ((await cpuSeconds(pids)) - before),
      "p50, ms": median(latenciesMs),
    };
  };
}

const ours = "mesh";
const before = "mesh before";
const contenders: Record<string, () => Promise<Record<string, number>>> = {
  [ours]: await creationsOn(mesh),
  ...(meshBefore && { [before]: await creationsOn(meshBefore) }),
};
const measured = await inTurns(rounds, contenders);
console.log(`${connections} connections, median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
reportFigures(
  Object.entries(measured[ours] ?? {}).map(([name, values]): Figure => {
    const former = measured[before]?.[name];
    return {
      name,
      ours: { name: ours, values },
      ...(former && { peer: { name: before, values: former } }),
      ...(name === "creations/s" && { goal: { value: 1000 } }),
    };
  }),
);
