/**
 * Events of a device to a webhook with a fast receiver, alone and beside one with a receiver that never answers or is
 * down; records stored and devices changed meanwhile. `node bench/webhooks.ts [events]`
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { connectDevice } from "@devmesh/simulator/device-connection";
import { startMesh } from "@devmesh/testkit/mesh";
import { inTurns, p99, reportFigures } from "./measure.ts";
import { createDevices, numbers, withoutRateLimits } from "./mesh-tenant.ts";

const events = Number(process.argv[2] ?? 1_000);
const records = 2_000;
const changes = 100;
/** Of the events whose delay is measured: their number, and the time between two in milliseconds. */
const paced = { count: 200, everyMs: 10 };
const longestMs = 60_000;

await using mesh = await startMesh({ store: "sqlite", broker: "own", env: withoutRateLimits });
const [login] = await createDevices(mesh, 1);
if (login === undefined) throw new Error("there is no device");
const { id, token } = login;
const device = await connectDevice({ url: mesh.mqttUrl, id, token }, () => undefined);

/** Milliseconds from the publication of an event to its arrival, by its number. */
const delays = new Map<number, number>();
const receiver = createServer(async (request, response) => {
  if (request.url === "/slow") return void request.resume();
  const { type, data } = JSON.parse(await text(request));
  if (type === "devmesh.rpc.out.tick") delays.set(data.number, performance.now() - data.at);
  response.writeHead(204).end();
});
await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const fast = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + longestMs; !(await holds()); await sleep(5))
    if (performance.now() > end) throw new Error("it took too long");
}

let number = 0;
const tick = () =>
  device.publishAsync(`${id}/event/tick`, JSON.stringify({ number: ++number, at: performance.now() }), {
    qos: 1,
  });

/** Events a second to the fast receiver, and the delay of events that come one by one. */
async function sendEvents() {
  delays.clear();
  const begin = performance.now();
  await Promise.all(Array.from({ length: events }, tick));
  await until(() => delays.size >= events);
  const perSecond = (events / (performance.now() - begin)) * 1_000;
  delays.clear();
  for (let left = paced.count; left > 0; left--) {
    await tick();
    await sleep(paced.everyMs);
  }
  await until(() => delays.size >= paced.count);
  return { perSecond, delayMs: p99([...delays.values()]) };
}

let stored = 0;
/** Records stored a second, and devices changed a second over REST. */
async function work() {
  const begin = performance.now();
  const publishing = Array.from({ length: records }, () =>
    device.publishAsync(`db/${id}/n`, String(++stored), { qos: 1 }),
  );
  await Promise.all(publishing);
  const last = () => mesh.http(`/api/v2/data?device_id=${id}&skip=-1`, {});
  await until(
    async () =>
      ((await last()).json as readonly { readonly message: string }[])[0]?.message === String(stored),
  );
  const recordsPerSecond = (records / (performance.now() - begin)) * 1_000;
  const next = numbers(changes);
  const begun = performance.now();
  const change = async () => {
    for (const nth of next) {
      const body = { shadow: { state: { desired: { nth, at: performance.now() } } } };
      const { status } = await mesh.http(`/api/v2/devices/${id}`, { body });
      if (status !== 200) throw new Error(`a change was answered ${status}`);
    }
  };
  await Promise.all(Array.from({ length: 10 }, change));
  return { recordsPerSecond, changesPerSecond: (changes / (performance.now() - begun)) * 1_000 };
}

/** All figures with webhooks of these URLs, of which each gets all events. */
async function measure(urls: readonly string[]) {
  const created: string[] = [];
  for (const url of urls) {
    const body = { url, events: ["rpc.out.*", "updated"] };
    const { json } = await mesh.http("/api/v2/webhooks", { body });
    created.push((json as { readonly id: string }).id);
  }
  const sent = urls.length === 0 ? { perSecond: Number.NaN, delayMs: Number.NaN } : await sendEvents();
  const done = await work();
  for (const one of created) await mesh.http(`/api/v2/webhooks/${one}`, { method: "DELETE" });
  return { ...sent, ...done };
}

const rounds = await inTurns(2, {
  none: () => measure([]),
  alone: () => measure([fast]),
  slow: () => measure([fast, `${fast}slow`]),
  down: () => measure([fast, "http://127.0.0.1:1/"]),
});
const { none, alone } = rounds;
reportFigures([
  { name: "events sent/s", ours: { name: "one webhook", values: alone.perSecond } },
  { name: "delay p99, ms", ours: { name: "one webhook", values: alone.delayMs }, goal: { value: 1_000 } },
  ...(["slow", "down"] as const).flatMap((kind) => [
    {
      name: "events sent/s",
      ours: { name: `beside one that is ${kind}`, values: rounds[kind].perSecond },
      peer: { name: "one webhook", values: alone.perSecond },
    },
    {
      name: "delay p99, ms",
      ours: { name: `beside one that is ${kind}`, values: rounds[kind].delayMs },
      goal: { value: 1_000 },
    },
  ]),
  ...(["alone", "slow", "down"] as const).flatMap((kind) => [
    {
      name: "records stored/s",
      ours: {
        name: kind === "alone" ? "one webhook" : `and one that is ${kind}`,
        values: rounds[kind].recordsPerSecond,
      },
      peer: { name: "no webhook", values: none.recordsPerSecond },
    },
    {
      name: "devices changed/s",
      ours: {
        name: kind === "alone" ? "one webhook" : `and one that is ${kind}`,
        values: rounds[kind].changesPerSecond,
      },
      peer: { name: "no webhook", values: none.changesPerSecond },
    },
  ]),
]);
await device.endAsync(true);
receiver.closeAllConnections();
receiver.close();
