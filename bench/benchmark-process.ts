import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Benchmark } from "./benchmarks.ts";
import type { Figure } from "./measure.ts";

/** Longest time of a benchmark, in milliseconds; one that runs by hand has no limit. */
const limitMs = 240_000;

/** What a benchmark reported. */
interface BenchmarkOutcome {
  readonly figures: readonly Figure[];
  /** What it printed, if it failed. */
  readonly failure: string | null;
}

let running: ChildProcess | null = null;

/** Runs a benchmark in a process of its own and collects what it reports. */
export async function runBenchmark({ name, args, byHand }: Benchmark): Promise<BenchmarkOutcome> {
  const child = fork(join(import.meta.dirname, `${name}.ts`), args, {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // Figures may be NaN, which JSON lacks.
    serialization: "advanced",
  });
  running = child;
  const figures: Figure[] = [];
  child.on("message", (reported: readonly Figure[]) => figures.push(...reported));
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => output.push(text));
  const timer = byHand === undefined ? setTimeout(() => child.kill(), limitMs) : undefined;
  const [code] = await once(child, "close");
  clearTimeout(timer);
  running = null;
  return { figures, failure: code === 0 ? null : `${output.join("")}ended with ${code ?? "a signal"}` };
}

/** Ends the benchmark that runs; all that it started ends with it. */
export function endBenchmark(): void {
  running?.kill();
}
