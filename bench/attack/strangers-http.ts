import { setTimeout as sleep } from "node:timers/promises";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { startChild } from "../child.ts";
import { median, p99, reportFigures } from "../measure.ts";
import { cpuSeconds, largestResidentMemory, meshProcesses, residentMemory } from "../process-usage.ts";
import { type Latencies, steadily } from "../steady-load.ts";

/** HTTP requests of a stranger without a key. */
interface HttpAttack {
  readonly name: string;
  readonly connections: number;
  /** Requests on a connection, one after the other. */
  readonly repeat: number;
  readonly request: string;
  /** Of the body after them. */
  readonly megabytes: number;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const post = (path: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n`;
const pipelined = (connections: number) => ({
  name: `${1_500} pipelined GET of an unknown path, ${connections} connections`,
  ...{ connections, repeat: 1_500, request: get("/x"), megabytes: 0 },
});

const attacks: readonly HttpAttack[] = [
  pipelined(1),
  pipelined(4),
  {
    name: "GET refused with 429, three connections",
    ...{ connections: 3, repeat: 1, request: get("/api/v2/mqtt"), megabytes: 0 },
  },
  {
    name: "bodies of refused requests",
    ...{ connections: 2, repeat: 1, request: post("/api/v2/devices"), megabytes: 1_000 },
  },
];

/** Idle connections, the addresses that they come from, and the MB that they may take: of one address 1,000 stay. */
const idle = [
  { connections: 10_000, addresses: 1, goal: 40 },
  { connections: 10_000, addresses: 10, goal: 100 },
] as const;
const idleName = ({ connections, addresses }: (typeof idle)[number]) =>
  `${connections} idle connections of ${addresses} addresses`;

/** Reads of a device a second, beside which strangers attack. */
const perSecond = 50;

/** Measures the attacks whose names hold `chosen`, `attackMs` each, and reports their figures. */
export async function measureStrangers(mesh: TestMesh, chosen: string, attackMs: number): Promise<void> {
  const { gateway = Number.NaN } = await meshProcesses(mesh);
  const { port } = new URL(mesh.url);

  const read = (forMs: number): Promise<Latencies> => {
    const end = performance.now() + forMs;
    return steadily({ perSecond, inFlight: 1_000, goesOn: (now) => now < end }, async () => {
      const { status } = await mesh.http("/api/v2/mqtt");
      if (status !== 200) throw new Error(`answered ${status}`);
    });
  };

  const chosenAttacks = attacks.filter(({ name }) => name.includes(chosen));
  if (chosenAttacks.length > 0) await read(3_000);
  for (const { name, connections, repeat, request, megabytes } of chosenAttacks) {
    const quiet = await read(attackMs / 2);
    const before = await cpuSeconds([gateway]);
    await using child = startChild(import.meta.resolve("./requests.ts"), {
      BENCH_PORT: port,
      BENCH_MS: String(attackMs),
      BENCH_CONNECTIONS: String(connections),
      BENCH_REPEAT: String(repeat),
      BENCH_REQUEST: request,
      BENCH_BODY_MB: String(megabytes),
    });
    const beside = await read(attackMs);
    const did = await child.ready;
    const cpu = (await cpuSeconds([gateway])) - before;
    console.log(`${name}: ${did}, ${cpu.toFixed(1)} s of processor time in the gateway`);
    const shown = (value: (ms: readonly number[]) => number) => ({
      ours: { name, values: [value(beside.ms)] },
      peer: { name: "quiet", values: [value(quiet.ms)] },
      digits: 1,
    });
    reportFigures([
      { name: "read, median, ms", ...shown(median) },
      { name: "read, p99, ms", ...shown(p99), goal: { ratio: 2 } },
      { name: "read, lost", ours: { name, values: [beside.lost] }, goal: { value: 0 } },
    ]);
    for (const reason of beside.reasons) console.log(`    ${reason}`);
    await sleep(2_000);
  }

  for (const one of idle.filter((one) => idleName(one).includes(chosen))) {
    const before = (await residentMemory(gateway)).rss;
    await using child = startChild(import.meta.resolve("./idle-connections.ts"), {
      BENCH_PORT: port,
      BENCH_CONNECTIONS: String(one.connections),
      BENCH_ADDRESSES: String(one.addresses),
    });
    console.log(`${idleName(one)}: ${await child.ready}`);
    const more = (await largestResidentMemory(gateway)) - before;
    reportFigures([
      {
        name: "memory of the gateway, MB more",
        ours: { name: idleName(one), values: [more] },
        goal: { value: one.goal },
      },
    ]);
  }
}
