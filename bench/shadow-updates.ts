/**
 * From the publication of a shadow update at QoS 1 to `accepted`: of one device alone, and of many at a steady rate.
 * `node bench/shadow-updates.ts [updates a second]`, by default half of what is handled of 1,000 devices.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { connectDevice } from "@devmesh/simulator/device-connection";
import { startMesh } from "@devmesh/testkit/mesh";
import { median, p99, reportFigures } from "./measure.ts";
import { type Credentials, createDevices, withoutRateLimits } from "./mesh-tenant.ts";
import { steadily } from "./steady-load.ts";

const perSecond = Number(process.argv[2] ?? 950);
const deviceCount = 200;
/** What follows an update, such as its delta, is over when the next one begins. */
const alone = { updates: 300, warmUp: 100, pauseMs: 25 };
const loadMs = 15_000;
const rounds = 3;
/** An update that takes longer is lost. */
const lostMs = 30_000;

/** Publishes updates of one device, one at a time, each answered by `accepted`. */
interface Updater {
  update(): Promise<void>;
}

async function connectUpdater(url: string, { id, token }: Credentials): Promise<Updater> {
  const accepted = deviceTopics.shadowUpdateAccepted(id);
  let answered: (() => void) | null = null;
  const client = await connectDevice({ url, id, token }, () => answered?.());
  await client.subscribeAsync(accepted);
  let count = 0;
  return {
    async update() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const timer = setTimeout(() => reject(new Error("no answer")), lostMs);
      answered = resolve;
      const reported = { temperature: count++ / 10, state: "ok" };
      client.publish(deviceTopics.shadowUpdate(id), JSON.stringify({ state: { reported } }), { qos: 1 });
      await promise.finally(() => clearTimeout(timer));
    },
  };
}

await using mesh = await startMesh({ env: withoutRateLimits });
const updaters: Updater[] = [];
for (const device of await createDevices(mesh, deviceCount))
  updaters.push(await connectUpdater(mesh.mqttUrl, device));
const [one] = updaters;
if (one === undefined) throw new Error("there is no device");

async function timesAlone(updater: Updater, updates: number): Promise<number[]> {
  const times: number[] = [];
  while (times.length < updates) {
    const begin = performance.now();
    await updater.update();
    times.push(performance.now() - begin);
    await sleep(alone.pauseMs);
  }
  return times;
}

async function timesUnderLoad(): Promise<number[]> {
  const idle = [...updaters];
  const end = performance.now() + loadMs;
  const { ms, lost } = await steadily(
    { perSecond, inFlight: deviceCount, goesOn: (now) => now < end },
    async () => {
      const updater = idle.shift();
      if (updater === undefined) throw new Error("all devices wait");
      await updater.update();
      idle.push(updater);
    },
  );
  if (lost > 0) throw new Error(`${lost} updates were lost`);
  return ms;
}

await timesAlone(one, alone.warmUp);
const ofAlone: number[] = [];
const ofLoad: { readonly p50: number; readonly p99: number }[] = [];
for (let round = 0; round < rounds; round++) {
  ofAlone.push(median(await timesAlone(one, alone.updates)));
  const times = await timesUnderLoad();
  ofLoad.push({ p50: median(times), p99: p99(times) });
}
const load = `${deviceCount} devices, ${perSecond} a second`;
reportFigures([
  {
    name: "one device alone, p50, ms",
    ours: { name: "mesh", values: ofAlone },
    goal: { value: 3 },
    digits: 1,
  },
  { name: `${load}, p50, ms`, ours: { name: "mesh", values: ofLoad.map(({ p50 }) => p50) }, digits: 1 },
  {
    name: `${load}, p99, ms`,
    ours: { name: "mesh", values: ofLoad.map((times) => times.p99) },
    goal: { value: 25 },
    digits: 1,
  },
]);
