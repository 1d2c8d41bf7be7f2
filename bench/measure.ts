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

/** `median (min–max)`. */
export function spread(values: readonly number[], digits = 0): string {
  const [middle, low, high] = [median(values), Math.min(...values), Math.max(...values)];
  return `${middle.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}

/** {@link spread} of ours by the peer's, round by round. */
function ratio(ours: readonly number[], peers: readonly number[]): string {
  return spread(
    ours.map((value, round) => value / (peers[round] ?? Number.NaN)),
    2,
  );
}

/** Prints each figure of both contenders, and the ratio of `ours` to `peer`. */
export function report<N extends string, F extends string>(
  measured: Rounds<N, F>,
  { ours, peer, digits = 0 }: { readonly ours: N; readonly peer: N; readonly digits?: number },
): void {
  for (const figure of Object.keys(measured[ours]) as F[]) {
    console.log(figure);
    for (const name of [ours, peer]) console.log(`  ${name}: ${spread(measured[name][figure], digits)}`);
    console.log(`  ratio: ${ratio(measured[ours][figure], measured[peer][figure])}`);
  }
}
