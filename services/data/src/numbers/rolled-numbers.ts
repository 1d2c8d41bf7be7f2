import { numbersOfMessage } from "./numbers-of-message.ts";
import { joinedTotals, type SeriesTotals, totalsOf } from "./totals.ts";

/** The widths of stored buckets, in milliseconds. */
export const bucketWidths = { minutes: 300_000, hours: 3_600_000 } as const;

export type BucketWidth = keyof typeof bucketWidths;

/** A series and where its numbers are. */
export interface SeriesKey {
  readonly deviceId: string;
  /** The whole topic. */
  readonly topic: string;
  readonly pointer: string;
}

/** The numbers of a span of time that begins at `start`, Unix milliseconds. */
export interface SeriesBucket {
  readonly width: BucketWidth;
  readonly start: number;
  readonly totals: SeriesTotals;
}

/** What some records have of a series, oldest span first. */
export interface RolledSeries extends SeriesKey {
  readonly buckets: readonly SeriesBucket[];
}

/** A record that may hold numbers. */
export interface RecordedMessage {
  /** The whole topic, which holds the device's id. */
  readonly topic: string;
  /** Unix milliseconds. */
  readonly timestamp: number;
  readonly message: string;
}

/** Gathers the numbers of records, which are added in the order of storing. */
export class RolledNumbers {
  readonly #bySeries = new Map<string, SeriesKey & { readonly spans: Map<number, SeriesTotals> }>();
  /** How many spans of five minutes it has, of all series. */
  spans = 0;

  add({ topic, timestamp, message }: RecordedMessage): void {
    const start = beginOf(timestamp, "minutes");
    for (const { pointer, value } of numbersOfMessage(message)) {
      const name = `${topic}\n${pointer}`;
      let series = this.#bySeries.get(name);
      if (series === undefined) {
        series = { deviceId: topic.split("/")[1] ?? "", topic, pointer, spans: new Map() };
        this.#bySeries.set(name, series);
      }
      const before = series.spans.get(start);
      if (before === undefined) this.spans++;
      series.spans.set(start, joinedTotals(before, totalsOf(value, timestamp)));
    }
  }

  /** All buckets, in the order in which the series came. */
  get all(): RolledSeries[] {
    return [...this.#bySeries.values()].map(({ spans, ...key }) => ({ ...key, buckets: bucketsOf(spans) }));
  }
}

function bucketsOf(spans: ReadonlyMap<number, SeriesTotals>): SeriesBucket[] {
  const minutes = [...spans]
    .sort(([a], [b]) => a - b)
    .map(([start, totals]): SeriesBucket => ({ width: "minutes", start, totals }));
  const hours = new Map<number, SeriesTotals>();
  for (const { start, totals } of minutes) {
    const hour = beginOf(start, "hours");
    hours.set(hour, joinedTotals(hours.get(hour), totals));
  }
  return [
    ...minutes,
    ...[...hours].map(([start, totals]): SeriesBucket => ({ width: "hours", start, totals })),
  ];
}

/** When the bucket of a time begins. */
function beginOf(at: number, width: BucketWidth): number {
  return Math.floor(at / bucketWidths[width]) * bucketWidths[width];
}
