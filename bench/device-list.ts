/**
 * Memory of gateway and `devices` while clients read whole lists of 50,000 devices, against the same devices in pages
 * of 1,000, and while clients stop reading. `node bench/device-list.ts [devices]`
 */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { seedDevices } from "./dashboard/seeded-devices.ts";
import { inTurns, reportFigures } from "./measure.ts";
import { largestResidentMemory, resetLargestMemory } from "./process-usage.ts";

const count = Number(process.argv[2] ?? 50_000);
const rounds = 3;
/** Clients that read at once. */
const readers = 2;
const pageSize = 1_000;
const stoppedForMs = 3_000;

await using folder = await tempFolder();
await seedDevices(folder.path, count);
// One key makes all requests.
await using mesh = await startMesh({ dataDir: folder.path, env: { RATE_MASTER: "1000000" } });
const pids = { gateway: await mesh.pidOf("gateway"), devices: await mesh.pidOf("devices") };
const list = "/api/v2/devices";

async function open(path: string): Promise<IncomingMessage> {
  const [answer] = (await once(
    get(mesh.url + path, { headers: { Authorization: `Bearer ${mesh.masterKey}` } }),
    "response",
  )) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`);
  return answer;
}

async function readWhole(): Promise<void> {
  for await (const _chunk of await open(list));
}

async function readPages(): Promise<void> {
  let next: string | undefined = `${list}?limit=${pageSize}`;
  while (next !== undefined) {
    const answer = await open(next);
    for await (const _chunk of answer);
    next = /<(.*)>/.exec(answer.headers.link?.toString() ?? "")?.[1];
  }
}

/** Takes the head of a list and stops reading. */
async function stopReading(): Promise<void> {
  const answer = await open(list);
  await sleep(stoppedForMs);
  answer.destroy();
}

/** Runs readers at once; how many devices they read a second, and the most memory meanwhile, in MB. */
async function measure(read: () => Promise<void>) {
  await Promise.all(Object.values(pids).map(resetLargestMemory));
  const begun = performance.now();
  await Promise.all(Array.from({ length: readers }, read));
  return {
    "devices/s": (count * readers) / ((performance.now() - begun) / 1_000),
    gateway: await largestResidentMemory(pids.gateway),
    devices: await largestResidentMemory(pids.devices),
  };
}

const whole: unknown = JSON.parse((await mesh.http(list)).text);
if (!Array.isArray(whole) || whole.length !== count) throw new Error("the list is not whole");

const names = {
  whole: "whole lists",
  pages: `pages of ${pageSize}`,
  stopped: "readers that stopped",
} as const;
const measured = await inTurns(rounds, {
  whole: () => measure(readWhole),
  pages: () => measure(readPages),
  stopped: () => measure(stopReading),
});
const seriesOf = (contender: keyof typeof names, figure: "devices/s" | "gateway" | "devices") => ({
  name: names[contender],
  values: measured[contender][figure],
});
console.log(`${count} devices, ${readers} readers, median (min–max) of ${rounds} rounds`);
const pages = (figure: "devices/s" | "gateway" | "devices") => seriesOf("pages", figure);
reportFigures([
  { name: "devices read/s", ours: seriesOf("whole", "devices/s"), peer: pages("devices/s") },
  ...(["gateway", "devices"] as const).flatMap((part) =>
    (["whole", "stopped"] as const).map((contender) => ({
      name: `most MB of ${part}`,
      ours: seriesOf(contender, part),
      peer: pages(part),
      goal: { ratio: 1.1 },
    })),
  ),
]);
