/**
 * `npm run bench [-- NAME...]`: benchmarks in turn, one table of their figures, written into docs/performance.md, and
 * what is worse than recorded there.
 */
import { endBenchmark, runBenchmark } from "./benchmark-process.ts";
import { type Benchmark, benchmarks } from "./benchmarks.ts";
import { describeSetting, watchLoad } from "./conditions.ts";
import { columns, type FigureRow, rowOf, worseThan } from "./figure-rows.ts";
import { type RunRow, recordedFigures, writePerformancePage } from "./performance-page.ts";
import { type Requirement, requirements } from "./requirements.ts";

const byName = benchmarks.filter(({ byHand }) => byHand !== undefined);
const usual = benchmarks.filter(({ byHand }) => byHand === undefined);
const usage = `Usage: npm run bench [-- NAME...]

Without a name: ${usual.map(({ name }) => name).join(", ")}.
Only by name:
${byName.map(({ name, byHand }) => `  ${name}: ${byHand}`).join("\n")}`;

const chosen = choose(process.argv.slice(2));
if (chosen === null) {
  console.error(usage);
  process.exit(2);
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    endBenchmark();
    process.exit(130);
  });
}

const begin = performance.now();
const setting = await describeSetting();
const recorded = await recordedFigures();
const lacking = new Map<Requirement, string | null>();
const rows: FigureRow[] = [];
const runs: RunRow[] = [];
const failed: string[] = [];
for (const [at, benchmark] of chosen.entries()) {
  const { name, args, needs } = benchmark;
  console.log(`[${at + 1}/${chosen.length}] ${name}`);
  if (needs && !lacking.has(needs)) lacking.set(needs, await requirements[needs]());
  const without = needs && lacking.get(needs);
  if (without) {
    console.log(`  skipped: ${without}`);
    continue;
  }
  const conditions = await watchLoad();
  const startedAt = performance.now();
  const { figures, failure } = await runBenchmark(benchmark);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
  if (failure !== null) {
    console.log(`  FAILED after ${seconds} s\n${failure}`);
    failed.push(name);
    continue;
  }
  const { load, steal } = await conditions();
  console.log(
    `  ${figures.length} figures in ${seconds} s; load average ${load}, steal ${steal || "unknown"}`,
  );
  rows.push(...figures.map((figure) => rowOf(name, figure)));
  const date = new Date().toISOString().slice(0, 10);
  runs.push({
    benchmark: name,
    arguments: args.join(" "),
    date,
    ...setting,
    ...(await conditions()),
    seconds,
  });
}
if (runs.length > 0) await writePerformancePage({ figures: rows, runs });

printTable();
for (const sentence of worseThan(recorded.figures, rows)) console.log(`more than 15 % worse: ${sentence}`);
const count = (met: string) => rows.filter((row) => row.met === met).length;
const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
console.log(
  `${count("yes")} goals met, ${count("no")} not met; ${minutes} min; written: docs/performance.md`,
);
if (failed.length > 0) console.log(`FAILED: ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);

/** The benchmarks of these names, or those that run without being named; null at an unknown name. */
function choose(names: readonly string[]): readonly Benchmark[] | null {
  if (names.length === 0) return usual;
  const found = benchmarks.filter(({ name }) => names.includes(name));
  return found.length === new Set(names).size ? found : null;
}

function printTable(): void {
  const keys = Object.keys(columns) as (keyof FigureRow)[];
  const lines = [columns, ...rows];
  const widths = keys.map((key) => Math.max(...lines.map((line) => line[key].length)));
  for (const line of lines)
    console.log(
      keys
        .map((key, at) => line[key].padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}
