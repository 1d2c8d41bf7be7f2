import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { repository } from "@devmesh/launcher/mesh/service-process";
import { columns, type FigureRow } from "./figure-rows.ts";

/** Under which conditions a benchmark ran, as text. */
export interface RunRow {
  readonly benchmark: string;
  /** As one would run it alone. */
  readonly arguments: string;
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly versions: string;
  readonly load: string;
  readonly steal: string;
  readonly seconds: string;
}

const runColumns: Readonly<Record<keyof RunRow, string>> = {
  benchmark: "benchmark",
  arguments: "arguments",
  date: "date",
  commit: "commit",
  machine: "machine",
  versions: "versions",
  load: "load average",
  steal: "steal",
  seconds: "s",
};

/** The generated part of docs/performance.md. */
export interface PerformanceFigures {
  readonly figures: readonly FigureRow[];
  readonly runs: readonly RunRow[];
}

const page = "docs/performance.md";
const markers = {
  figures: "figures of npm run bench",
  runs: "runs of npm run bench",
} as const;

/** What the page of the last commit holds; of the file where git does not know it. */
export async function recordedFigures(): Promise<PerformanceFigures> {
  const committed = await promisify(execFile)("git", ["show", `HEAD:./${page}`], { cwd: repository }).then(
    ({ stdout }) => stdout,
    () => null,
  );
  return parse(committed ?? (await readFile(join(repository, page), "utf8")));
}

/** Writes what was measured into the page. Benchmarks that did not run keep their rows. */
export async function writePerformancePage(measured: PerformanceFigures): Promise<void> {
  const path = join(repository, page);
  const text = await readFile(path, "utf8");
  const former = parse(text);
  const ran = new Set(measured.runs.map(({ benchmark }) => benchmark));
  const merge = <R extends { readonly benchmark: string }>(before: readonly R[], now: readonly R[]) =>
    [...before.filter(({ benchmark }) => !ran.has(benchmark)), ...now].toSorted((a, b) =>
      a.benchmark < b.benchmark ? -1 : a.benchmark > b.benchmark ? 1 : 0,
    );
  const withFigures = replace(text, markers.figures, table(columns, merge(former.figures, measured.figures)));
  const runs = table(runColumns, merge(former.runs, measured.runs));
  await writeFile(path, replace(withFigures, markers.runs, runs));
}

function parse(text: string): PerformanceFigures {
  return {
    figures: rowsOf(columns, block(text, markers.figures)),
    runs: rowsOf(runColumns, block(text, markers.runs)),
  };
}

/** Where the text between two markers begins and ends. */
function boundsOf(text: string, marker: string): readonly [number, number] {
  const [begin, end] = [`<!-- ${marker} -->\n`, `<!-- end of ${marker} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to === -1) throw new Error(`${page} lacks the markers of the ${marker}`);
  return [from + begin.length, to];
}

function block(text: string, marker: string): string {
  return text.slice(...boundsOf(text, marker));
}

function replace(text: string, marker: string, content: string): string {
  const [from, to] = boundsOf(text, marker);
  return `${text.slice(0, from)}\n${content}\n${text.slice(to)}`;
}

type Columns<K extends string> = Readonly<Record<K, string>>;

function table<K extends string>(titles: Columns<K>, rows: readonly Readonly<Record<K, string>>[]): string {
  const keys = Object.keys(titles) as K[];
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  const body = rows.map((row) => line(keys.map((key) => row[key])));
  return [line(keys.map((key) => titles[key])), line(keys.map(() => "---")), ...body].join("");
}

/** The rows of a table that {@link table} wrote. */
function rowsOf<K extends string>(titles: Columns<K>, text: string): Readonly<Record<K, string>>[] {
  const keys = Object.keys(titles) as K[];
  const lines = text.split("\n").filter((line) => line.startsWith("| "));
  return lines.slice(2).map((line) => {
    const cells = line.slice(1, -1).split("|");
    return Object.fromEntries(keys.map((key, at) => [key, cells[at]?.trim() ?? ""])) as Record<K, string>;
  });
}
