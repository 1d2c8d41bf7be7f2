/** What a series had in a span of time. */
export interface SeriesTotals {
  readonly count: number;
  readonly min: number;
  readonly max: number;
  /** Of as large a number as there is, where it is larger. */
  readonly sum: number;
  readonly first: number;
  /** Times of the first and last number, Unix milliseconds. */
  readonly firstAt: number;
  readonly last: number;
  readonly lastAt: number;
}

/** The totals of one number. */
export function totalsOf(value: number, at: number): SeriesTotals {
  return { count: 1, min: value, max: value, sum: value, first: value, firstAt: at, last: value, lastAt: at };
}

/** Adds one number, which was stored later, in place. */
export function addNumber(
  totals: { -readonly [K in keyof SeriesTotals]: number },
  value: number,
  at: number,
): void {
  totals.count++;
  if (value < totals.min) totals.min = value;
  if (value > totals.max) totals.max = value;
  totals.sum = bounded(totals.sum + value);
  if (at < totals.firstAt) {
    totals.first = value;
    totals.firstAt = at;
  }
  if (at >= totals.lastAt) {
    totals.last = value;
    totals.lastAt = at;
  }
}

/** Both together. What comes `next` was stored later: of equal times its number is the last. */
export function joinedTotals(before: SeriesTotals | undefined | null, next: SeriesTotals): SeriesTotals {
  if (before === undefined || before === null) return next;
  const [first, last] = [
    before.firstAt <= next.firstAt ? before : next,
    next.lastAt >= before.lastAt ? next : before,
  ];
  return {
    count: before.count + next.count,
    min: Math.min(before.min, next.min),
    max: Math.max(before.max, next.max),
    sum: bounded(before.sum + next.sum),
    first: first.first,
    firstAt: first.firstAt,
    last: last.last,
    lastAt: last.lastAt,
  };
}

/** JSON has no infinity. */
function bounded(sum: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, sum));
}

/** The totals of consecutive spans of time, which are filled in the order of storing. */
export class SpanTotals {
  readonly #edges: readonly number[];
  readonly spans: (SeriesTotals | null)[];

  /** Spans lie between neighbours of `edges`, ascending Unix milliseconds; an edge belongs to the span after it. */
  constructor(edges: readonly number[]) {
    this.#edges = edges;
    this.spans = Array<SeriesTotals | null>(Math.max(0, edges.length - 1)).fill(null);
  }

  /** Adds what began, or was stored, at a time; what lies outside is left out. */
  add(at: number, totals: SeriesTotals): void {
    const span = this.#spanOf(at);
    if (span !== null) this.spans[span] = joinedTotals(this.spans[span], totals);
  }

  #spanOf(at: number): number | null {
    const edges = this.#edges;
    let [low, high] = [0, edges.length - 1];
    if (at < (edges[low] ?? Number.POSITIVE_INFINITY) || at >= (edges[high] ?? 0)) return null;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (at < (edges[middle] ?? 0)) high = middle;
      else low = middle;
    }
    return low;
  }
}
