import { basename } from "node:path";

/** Figures of one run of a contender by name, which includes the unit. */
type Figures<F extends string> = Readonly<Record<F, number>>;

type Run<F extends string> = () => Figures<F> | Promise<Figures<F>>;

/** Figures of all rounds, by contender and name. */
export type Rounds<N extends string, F extends string> = Readonly<
  Record<N, Readonly<Record<F, readonly number[]>>>
>;

/**
 * Runs contenders in turns, so that other load on the machine meets all alike: one round to warm up, then `rounds`,
 * every other one in reverse order.
 */
export async function inTurns<N extends string, F extends string>(
  rounds: number,
  contenders: Readonly<Record<N, Run<F>>>,
): Promise<Rounds<N, F>> {
  const names = Object.keys(contenders) as N[];
  const measured = Object.fromEntries(names.map((name) => [name, {}])) as Record<N, Record<F, number[]>>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const figures = await contenders[name]();
      if (round === 0) continue;
      for (const [figure, value] of Object.entries(figures) as [F, number][]) {
        measured[name][figure] ??= [];
        measured[name][figure].push(value);
      }
    }
  }
  return measured;
}

/** The median, the upper one of an even number; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The value that 99 of 100 do not exceed; NaN of none. */
export function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN;
}

/** `median (min–max)`. */
function spread(values: readonly number[], digits = 0): string {
  const [middle, low, high] = [median(values), Math.min(...values), Math.max(...values)];
  return `${middle.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}

/** What the median of a figure must reach: at least, or at most where lower is better ({@link higherIsBetter}). */
export type Goal =
  | {
      /** Of ours to the peer. */
      readonly ratio: number;
    }
  | {
      /** Of ours alone, in the unit of the figure. */
      readonly value: number;
    };

/** Values of one contender, one each round. */
interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

/** One line of the table. */
export interface Figure {
  /** What is counted, and its unit; with the names of the contenders unique in its benchmark. */
  readonly name: string;
  readonly ours: Series;
  /** What took turns with ours. */
  readonly peer?: Series;
  readonly goal?: Goal;
  /** Digits of values after the point. Default: none. */
  readonly digits?: number;
}

/** Whether a figure is a rate, by its name: of times and sizes, less is better. */
function higherIsBetter({ name }: Pick<Figure, "name">): boolean {
  return /\/s\b|\bper CPU second\b/.test(name);
}

/** Ours by the peer, round by round; without a peer by the value of the goal; null without either. */
function ratiosOf({ ours, peer, goal }: Figure): readonly number[] | null {
  if (peer) return ours.values.map((value, round) => value / (peer.values[round] ?? Number.NaN));
  return goal && "value" in goal && goal.value > 0 ? ours.values.map((value) => value / goal.value) : null;
}

/** Whether the goal is met; null without one. */
function meetsGoal(figure: Figure): boolean | null {
  const { goal, ours } = figure;
  if (!goal) return null;
  const [reached, asked] =
    "value" in goal ? [median(ours.values), goal.value] : [median(ratiosOf(figure) ?? []), goal.ratio];
  return higherIsBetter(figure) ? reached >= asked : reached <= asked;
}

/** A goal as the table shows it; empty without one. */
function goalText(figure: Figure): string {
  const { goal } = figure;
  if (!goal) return "";
  const asked = "value" in goal ? String(goal.value) : `ratio ${goal.ratio}`;
  return `${higherIsBetter(figure) ? "≥" : "≤"} ${asked}`;
}

/** Prints each figure as a row of the table of docs/performance.md. */
export function reportFigures(figures: readonly Figure[]): void {
  const benchmark = basename(process.argv[1] ?? "", ".ts");
  for (const figure of figures) {
    const { name, ours, peer, digits } = figure;
    const [ratios, met] = [ratiosOf(figure), meetsGoal(figure)];
    const series = [ours, peer].map((one) => (one ? `${one.name}: ${spread(one.values, digits)}` : ""));
    const ratio = ratios ? spread(ratios, 2) : "";
    const cells = [
      benchmark,
      name,
      ...series,
      ratio,
      goalText(figure),
      met === null ? "" : met ? "yes" : "no",
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

/** Whose rounds are compared, and what they must reach. */
interface Comparison<N extends string, F extends string> {
  readonly ours: N;
  readonly peer: N;
  readonly goals?: Partial<Record<F, Goal>>;
  readonly digits?: number;
}

/** {@link reportFigures} of each figure of `peer` beside that of `ours`, which may have more. */
export function report<N extends string, F extends string>(
  measured: Rounds<N, F>,
  { ours, peer, goals = {}, digits = 0 }: Comparison<N, F>,
): void {
  reportFigures(
    (Object.keys(measured[peer]) as F[]).map((name) => {
      const goal = goals[name];
      return {
        name,
        ours: { name: ours, values: measured[ours][name] },
        peer: { name: peer, values: measured[peer][name] },
        ...(goal && { goal }),
        digits,
      };
    }),
  );
}
