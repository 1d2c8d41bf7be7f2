/**
 * Firmware: the upload of a large file, one image that many devices fetch at a time, and random ranges of many images;
 * beside a file server. `node bench/firmware.ts [sqlite|mongodb] [devices]`
 */
import { createHash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { startChild } from "./child.ts";
import { inTurns, reportFigures } from "./measure.ts";
import { numbers, withoutRateLimits } from "./mesh-tenant.ts";
import { largestResidentMemory, resetLargestMemory, residentMemory } from "./process-usage.ts";

const store = process.argv[2] === "mongodb" ? "mongodb" : "sqlite";
const devices = Number(process.argv[3] ?? 1_000);
const rounds = 3;
const megabyte = 1e6;
const images = 50;
const rangeBytes = 16 * 1024;

// One key fetches for all devices.
const env = { ...withoutRateLimits, MASTER_LARGE_ANSWERS: "5000", LARGE_ANSWERS: "5000" };
await using mesh = await startMesh({ store, broker: "own", env });
await using folder = await tempFolder();
await using fileServer = startChild(import.meta.resolve("./firmware/static-server.ts"), {
  FOLDER: folder.path,
});
const fileUrl = String(await fileServer.ready);
const headers = { authorization: `Bearer ${mesh.masterKey}` };
const pids = { gateway: await mesh.pidOf("gateway"), jobs: await mesh.pidOf("jobs") };

/** How much more memory the processes had at most, in MB. */
async function growth(work: () => Promise<unknown>) {
  const before = await Promise.all(Object.values(pids).map(residentMemory));
  await Promise.all(Object.values(pids).map(resetLargestMemory));
  await work();
  const most = await Promise.all(Object.values(pids).map(largestResidentMemory));
  const [gateway, jobs] = most.map((value, at) => value - (before[at]?.rss ?? Number.NaN));
  return { gateway: gateway ?? Number.NaN, jobs: jobs ?? Number.NaN };
}

async function upload(name: string, content: Buffer<ArrayBuffer>): Promise<string> {
  const sha256 = createHash("sha256").update(content).digest("hex");
  const body = { name, version: sha256, size: content.length, sha256 };
  const { json } = await mesh.http("/api/v2/firmware", { body });
  const answer = await mesh.http(`/api/v2/firmware/${json.id}/content`, { body: content });
  if (answer.status !== 200) throw new Error(answer.text);
  return json.id;
}

/** Reads an answer to its end, and resolves with its bytes. */
function fetchBytes(url: string, agent: Agent, range?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent, headers: { ...headers, ...(range && { range }) } }, (response) => {
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on("error", reject).on("end", () => resolve(bytes));
    }).on("error", reject);
  });
}

/** Megabytes a second of requests, so many at a time. */
async function throughput(
  count: number,
  atOnce: number,
  ask: (nth: number, agent: Agent) => Promise<number>,
) {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const next = numbers(count);
  let bytes = 0;
  const begin = performance.now();
  const work = async () => {
    for (const nth of next) {
      const received = await ask(nth, agent);
      bytes += received;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  agent.destroy();
  return bytes / megabyte / ((performance.now() - begin) / 1_000);
}

const large = randomBytes(100 * megabyte);
const uploads: { readonly rate: number; readonly gateway: number; readonly jobs: number }[] = [];
for (let round = 0; round < rounds; round++) {
  large.writeUInt32BE(round);
  const begin = performance.now();
  const grown = await growth(() => upload("large", large));
  uploads.push({ rate: (large.length / megabyte) * (1_000 / (performance.now() - begin)), ...grown });
}
reportFigures([
  {
    name: `${store}: upload of 100 MB, MB/s`,
    ours: { name: "mesh", values: uploads.map(({ rate }) => rate) },
    goal: { value: 10 },
  },
  {
    name: `${store}: gateway grows by, MB`,
    ours: { name: "upload", values: uploads.map(({ gateway }) => gateway) },
    goal: { value: 40 },
  },
  {
    name: `${store}: jobs grows by, MB`,
    ours: { name: "upload", values: uploads.map(({ jobs }) => jobs) },
    goal: { value: 60 },
  },
]);

const ids: string[] = [];
for (let nth = 0; nth < images; nth++) {
  const image = randomBytes(megabyte);
  ids.push(await upload("image", image));
  await writeFile(join(folder.path, String(nth)), image);
}
const contentOf = (nth: number) => `${mesh.url}/api/v2/firmware/${ids[nth]}/content`;
const fileOf = (nth: number) => `${fileUrl}/${nth}`;
const someRange = () => {
  const start = Math.floor(Math.random() * (megabyte - rangeBytes));
  return `bytes=${start}-${start + rangeBytes - 1}`;
};
const someImage = () => Math.floor(Math.random() * images);
const oneImage = `one image of 1 MB by ${devices} at a time, MB/s`;
const ranges = `ranges of 16 KB of ${images} images, MB/s`;
const grown: number[] = [];
const measured = await inTurns(rounds, {
  async mesh() {
    let whole = Number.NaN;
    const { gateway } = await growth(async () => {
      whole = await throughput(devices, devices, (_, agent) => fetchBytes(contentOf(0), agent));
    });
    grown.push(gateway);
    const parts = await throughput(4 * devices, 100, (_, agent) =>
      fetchBytes(contentOf(someImage()), agent, someRange()),
    );
    return { [oneImage]: whole, [ranges]: parts };
  },
  "file server": async () => ({
    [oneImage]: await throughput(devices, devices, (_, agent) => fetchBytes(fileOf(0), agent)),
    [ranges]: await throughput(4 * devices, 100, (_, agent) =>
      fetchBytes(fileOf(someImage()), agent, someRange()),
    ),
  }),
});
reportFigures([
  ...[oneImage, ranges].map((name) => ({
    name: `${store}: ${name}`,
    ours: { name: "mesh", values: measured.mesh[name] ?? [] },
    peer: { name: "file server", values: measured["file server"][name] ?? [] },
    goal: { ratio: 0.5 },
  })),
  {
    name: `${store}: gateway grows by, MB, with its cache of 64`,
    ours: { name: `${devices} at a time`, values: grown },
    goal: { value: 128 },
  },
]);
