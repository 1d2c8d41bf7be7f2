/**
 * Calls that wait: stored over HTTP, then answered by devices that all connect within seconds, once with the process
 * of `jobs` killed meanwhile. A device that listens is called beside them. `node bench/jobs.ts [devices]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh } from "@devmesh/testkit/mesh";
import { answerCalls } from "./device-calls.ts";
import { p99, reportFigures } from "./measure.ts";
import { type Credentials, createDevices, numbers, withoutRateLimits } from "./mesh-tenant.ts";
import { cpuSeconds } from "./process-usage.ts";

const count = Number(process.argv[2] ?? 1_000);
/** All devices connect within so long, in milliseconds. */
const stormMs = 10_000;
const longestMs = 120_000;

await using mesh = await startMesh({ store: "sqlite", broker: "own", env: withoutRateLimits });
const [called, ...sleepers] = await createDevices(mesh, count + 1);
if (called === undefined) throw new Error("there is no device");

/** How often each device was called. */
const received = new Map<string, number>();
const connected: Awaited<ReturnType<typeof answerCalls>>[] = [];

/** Connects a device that answers each call, and counts them. */
async function connectAnswering(device: Credentials): Promise<void> {
  const { id } = device;
  connected.push(
    await answerCalls(mesh.mqttUrl, device, () => received.set(id, (received.get(id) ?? 0) + 1)),
  );
}

async function post(path: string, status: number): Promise<void> {
  const answer = await mesh.http(`/api/v2/${path}`, { method: "POST", body: {} });
  if (answer.status !== status) throw new Error(`${path}: ${answer.status} ${answer.text}`);
}

/** Milliseconds of each call of a device that listens, until `until` resolves. */
async function callMeanwhile(until: Promise<unknown>): Promise<number[]> {
  const latencies: number[] = [];
  let over = false;
  void until.finally(() => {
    over = true;
  });
  while (!over) {
    const begin = performance.now();
    await post(`devices/${called?.id}/rpc/Echo`, 200);
    latencies.push(performance.now() - begin);
    await sleep(20);
  }
  return latencies;
}

async function waiting(): Promise<number> {
  const { json } = await mesh.http("/api/v2/mesh", {});
  return (json as { readonly queues: { readonly jobs: number | null } }).queues.jobs ?? Number.NaN;
}

/** Stores a call for each sleeping device. */
async function storeCalls(): Promise<number> {
  const next = numbers(sleepers.length);
  const work = async () => {
    for (const nth of next) await post(`devices/${sleepers[nth]?.id}/rpc/Echo?wait=PT1H`, 202);
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: 10 }, work));
  return (performance.now() - begin) / 1_000;
}

/** All sleeping devices connect; resolves with the seconds until nothing waits any more. */
async function storm(killSender: boolean): Promise<number> {
  const next = numbers(sleepers.length);
  const begin = performance.now();
  const work = async () => {
    for (const nth of next) {
      const due = begin + (nth / sleepers.length) * stormMs;
      await sleep(Math.max(0, due - performance.now()));
      await connectAnswering(sleepers[nth] as Credentials);
    }
  };
  const connecting = Promise.all(Array.from({ length: 20 }, work));
  if (killSender) {
    await sleep(stormMs / 2);
    await mesh.kill("jobs");
  }
  await connecting;
  while ((await waiting()) !== 0 && performance.now() < begin + longestMs) await sleep(100);
  return (performance.now() - begin) / 1_000;
}

const calls = (name: string, values: readonly number[]) => ({ name, values });
await connectAnswering(called);
const quiet = p99(await callMeanwhile(sleep(5_000)));
for (const killSender of [false, true]) {
  const title = killSender ? "jobs killed, " : "";
  received.clear();
  const storingS = await storeCalls();
  const before = await cpuSeconds([await mesh.pidOf("jobs")]);
  const ending = storm(killSender);
  const latencies = await callMeanwhile(ending);
  const endedS = await ending;
  const times = sleepers.map(({ id }) => received.get(id) ?? 0);
  const lost = times.filter((n) => n === 0).length;
  const figure = (name: string, value: number) => ({ name: `${title}${name}`, ours: calls("mesh", [value]) });
  reportFigures([
    { ...figure("calls stored/s", sleepers.length / storingS), digits: 0 },
    {
      ...figure("s from the first connection to the last answer", endedS),
      digits: 1,
      goal: { value: killSender ? 45 : 20 },
    },
    { ...figure("calls lost", lost), goal: { value: 0 } },
    { ...figure("calls doubled", times.filter((n) => n > 1).length), goal: { value: 0 } },
    {
      name: `${title}p99 of other calls, ms`,
      ours: calls("in the storm", [p99(latencies)]),
      peer: calls("quiet", [quiet]),
      goal: { ratio: 2 },
      digits: 1,
    },
    ...(killSender
      ? []
      : [
          {
            ...figure(
              "ms of processor time of jobs for each call",
              (((await cpuSeconds([await mesh.pidOf("jobs")])) - before) * 1_000) / sleepers.length,
            ),
            digits: 2,
          },
        ]),
  ]);
  for (const device of connected.splice(1)) await device.endAsync(true);
  // Until `devices` counts none of them as online.
  await sleep(5_000);
}
for (const device of connected) await device.endAsync(true);
