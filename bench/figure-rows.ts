import { type Figure, goalText, higherIsBetter, meetsGoal, ratiosOf, spread } from "./measure.ts";

/** One figure as text, as the table of `npm run bench` and docs/performance.md show it. */
export interface FigureRow {
  readonly benchmark: string;
  readonly figure: string;
  /** `NAME: median (min–max)`. */
  readonly ours: string;
  /** The same; empty without a peer. */
  readonly peer: string;
  readonly ratio: string;
  readonly goal: string;
  readonly met: string;
}

/** Titles of the columns, in order. */
export const columns: Readonly<Record<keyof FigureRow, string>> = {
  benchmark: "benchmark",
  figure: "figure",
  ours: "ours",
  peer: "peer",
  ratio: "ratio",
  goal: "goal",
  met: "met",
};

/** The row of a figure. */
export function rowOf(benchmark: string, figure: Figure): FigureRow {
  const { name, ours, peer, digits } = figure;
  const ratios = ratiosOf(figure);
  const met = meetsGoal(figure);
  return {
    benchmark,
    figure: name,
    ours: `${ours.name}: ${spread(ours.values, digits)}`,
    peer: peer ? `${peer.name}: ${spread(peer.values, digits)}` : "",
    ratio: ratios ? spread(ratios, 2) : "",
    goal: goalText(figure),
    met: met === null ? "" : met ? "yes" : "no",
  };
}

/** How far a ratio may be worse than the recorded one, as a share of it. */
const tolerance = 0.15;

/** A sentence for each row whose ratio is worse than that of the same row in `recorded` by more than the tolerance. */
export function worseThan(recorded: readonly FigureRow[], rows: readonly FigureRow[]): string[] {
  const recordedRatios = new Map(recorded.map((row) => [identity(row), Number.parseFloat(row.ratio)]));
  return rows.flatMap((row) => {
    const before = recordedRatios.get(identity(row));
    const now = Number.parseFloat(row.ratio);
    if (before === undefined || Number.isNaN(before) || Number.isNaN(now)) return [];
    const share = higherIsBetter({ name: row.figure }) ? now / before : before / now;
    if (share >= 1 - tolerance) return [];
    return [`${identity(row)}: ratio ${now}, recorded ${before}`];
  });
}

/** What is the same in each run. */
function identity({ benchmark, figure, ours, peer }: FigureRow): string {
  const contenders = [ours, peer].map((cell) => cell.split(": ")[0]).filter(Boolean);
  return `${benchmark}, ${figure}, ${contenders.join(" to ")}`;
}
