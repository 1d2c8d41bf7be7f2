/**
 * GET of a 1 KB device through the gateway, with fakes of `devices` and `keys`, against raw Express 5 and one raw NATS
 * request: as many processes on the same nats-server. `node bench/gateway-chain.ts [seconds]`
 */
import { freePort } from "@devmesh/testkit/free-port";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { startChild } from "./child.ts";
import { deviceId } from "./gateway-chain/device.ts";
import { loadHttp } from "./http-load.ts";
import { inTurns, median, report } from "./measure.ts";
import { cpuSeconds } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 4) * 1000;
const rounds = 5;
const connections = 50;
const key = `mk_${"0".repeat(31)}1`;

await using broker = await startNatsServer({ jetstream: true });
const natsEnv = { NATS_URL: broker.url, NATS_USER: undefined, NATS_PASSWORD: undefined };
const role = (name: string) => import.meta.resolve(`./gateway-chain/${name}.ts`);
await using fakes = startChild(role("fakes"), { ...natsEnv, BENCH_KEY: key });
await using rawResponder = startChild(role("raw-responder"), natsEnv);
await Promise.all([fakes.ready, rawResponder.ready]);

const port = String(await freePort());
// As deployed, with its access log, but without the rate limit of one key.
await using gateway = startChild(import.meta.resolve("@devmesh/gateway/src/main.ts"), {
  ...natsEnv,
  PORT: port,
  RATE_MASTER: "1000000",
});
await using rawExpress = startChild(role("raw-express"), natsEnv);
await gateway.ready;
const rawPort = String(await rawExpress.ready);

/** Loads one chain of HTTP server, answerer and broker. */
async function load(at: string, serverPid: number, answererPid: number) {
  const chain = [serverPid, answererPid, broker.pid];
  const before = [await cpuSeconds([serverPid]), await cpuSeconds(chain)] as const;
  const { requestsPerSecond, latenciesMs } = await loadHttp({
    url: `http://127.0.0.1:${at}/api/v2/devices/${deviceId}`,
    method: "GET",
    headers: { Authorization: `Bearer ${key}` },
    connections,
    forMs,
  });
  return {
    "requests/s": requestsPerSecond,
    "requests per CPU second of the HTTP server":
      latenciesMs.length / ((await cpuSeconds([serverPid])) - before[0]),
    "requests per CPU second of server, answerer and broker":
      latenciesMs.length / ((await cpuSeconds(chain)) - before[1]),
    "p50, µs": median(latenciesMs) * 1000,
  };
}

const measured = await inTurns(rounds, {
  "gateway and kit": () => load(port, gateway.pid, fakes.pid),
  "raw Express and NATS": () => load(rawPort, rawExpress.pid, rawResponder.pid),
});
console.log(`${connections} connections, median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
report(measured, { ours: "gateway and kit", peer: "raw Express and NATS" });
