import { readFile } from "node:fs/promises";

/**
 * Ticks of a processor's clock a second as Linux counts them for programs (`USER_HZ`, the same on all its platforms
 * of today).
 */
const TICKS_A_SECOND = 100;

/**
 * Processor time that processes have used since they started, in seconds, in steps of 10 ms. Reads `/proc`: Linux
 * only.
 */
export async function cpuSeconds(pids: readonly number[]): Promise<number> {
  const each = pids.map(async (pid) => {
    const line = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name stands in brackets and may hold spaces; user and system time are fields 14 and 15.
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  });
  return (await Promise.all(each)).reduce((sum, seconds) => sum + seconds, 0);
}

/** What a process holds in memory, in MB. */
export interface ResidentMemory {
  /** All of its resident pages. */
  readonly rss: number;
  /** The same, but a page that n processes share counts for 1/n. */
  readonly pss: number;
}

/** Reads `/proc`: Linux only. */
export async function residentMemory(pid: number): Promise<ResidentMemory> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  const megabytes = (name: string) => {
    const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(rollup)?.[1];
    return (Number(kilobytes) * 1024) / 1e6;
  };
  return { rss: megabytes("Rss"), pss: megabytes("Pss") };
}
