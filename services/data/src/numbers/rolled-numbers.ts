import { numbersOfMessage } from "./numbers-of-message.ts";
import { addNumber, joinedTotals, type SeriesTotals, totalsOf } from "./totals.ts";

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
interface SeriesBucket {
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

/** Numbers of a series by the begin of their spans of five minutes. */
interface GatheredSeries extends SeriesKey {
  readonly spans: Map<number, SeriesTotals>;
}

/** Gathers the numbers of records, which are added in the order of storing. */
export class RolledNumbers {
  readonly #byTopic = new Map<string, Map<string, GatheredSeries>>();
  #topic = "";
  #ofTopic = new Map<string, GatheredSeries>();
  readonly #inOrder: GatheredSeries[] = [];
  /** How many spans of five minutes it has, of all series. */
  spans = 0;

  add({ topic, timestamp, message }: RecordedMessage): void {
    const numbers = numbersOfMessage(message);
    if (numbers.length === 0) return;
    const start = beginOf(timestamp, "minutes");
    if (topic !== this.#topic) {
      this.#topic = topic;
      this.#ofTopic = this.#byTopic.get(topic) ?? new Map();
      this.#byTopic.set(topic, this.#ofTopic);
    }
    const ofTopic = this.#ofTopic;
    for (const { pointer, value } of numbers) {
      let series = ofTopic.get(pointer);
      if (series === undefined) {
        series = { deviceId: topic.split("/")[1] ?? "", topic, pointer, spans: new Map() };
        ofTopic.set(pointer, series);
        this.#inOrder.push(series);
      }
      const totals = series.spans.get(start);
      if (totals !== undefined) addNumber(totals, value, timestamp);
      else {
        series.spans.set(start, totalsOf(value, timestamp));
        this.spans++;
      }
    }
  }

  /** All buckets, in the order in which the series came. */
  get all(): RolledSeries[] {
    return this.#inOrder.map(({ spans, ...key }) => ({ ...key, buckets: bucketsOf(spans) }));
  }
}

/** All numbers of a series together. */
export function totalsOfSeries({ buckets }: RolledSeries): SeriesTotals {
  return buckets
    .filter(({ width }) => width === "hours")
    .map(({ totals }) => totals)
    .reduce((before, next) => joinedTotals(before, next));
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
