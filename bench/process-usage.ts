import { readFile, writeFile } from "node:fs/promises";
import type { TestMesh } from "@devmesh/testkit/mesh";

/** Clock ticks a second in `/proc` (`USER_HZ`). */
const TICKS_A_SECOND = 100;

/** Processor time of processes since their start, in seconds, in steps of 10 ms. Linux only, like all here. */
export async function cpuSeconds(pids: readonly number[]): Promise<number> {
  const each = pids.map(async (pid) => {
    const line = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name is in brackets and may hold spaces; user and system time are fields 14 and 15.
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  });
  return (await Promise.all(each)).reduce((sum, seconds) => sum + seconds, 0);
}

/** Memory of a process, in MB. */
export interface ResidentMemory {
  readonly rss: number;
  /** A page that n processes share counts for 1/n. */
  readonly pss: number;
}

export async function residentMemory(pid: number): Promise<ResidentMemory> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  const megabytes = (name: string) => {
    const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(rollup)?.[1];
    return (Number(kilobytes) * 1024) / 1e6;
  };
  return { rss: megabytes("Rss"), pss: megabytes("Pss") };
}

/** Lets {@link largestResidentMemory} count from now on. */
export async function resetLargestMemory(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}

/** The most memory that a process had at a time, in MB; a shared page counts as a whole one. */
export async function largestResidentMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return (Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
}

/** Process ids of the parts of a mesh: `launcher`, `nats-server` and each service. */
export async function meshProcesses(mesh: TestMesh): Promise<Readonly<Record<string, number>>> {
  const { pid, nats_server, services } = await mesh.parts();
  if (nats_server === null) throw new Error("the mesh has no nats-server of its own");
  const ofServices = Object.entries(services).map(([name, part]) => [name, part.pid] as const);
  return { launcher: pid, "nats-server": nats_server.pid, ...Object.fromEntries(ofServices) };
}
