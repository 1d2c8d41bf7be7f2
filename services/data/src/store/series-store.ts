import type { SeriesKey } from "../numbers/rolled-numbers.ts";
import type { SeriesTotals } from "../numbers/totals.ts";

/** Where the numbers of an answer come from; buckets where spans are made of whole ones. */
export type SeriesSource = "records" | "minutes" | "hours";

/** Which numbers of a series. */
export interface SpansQuery extends SeriesKey {
  /** Reading is shared fairly between callers. */
  readonly caller: string;
  /** Ascending Unix milliseconds; spans lie between neighbours. Of buckets, each is the begin of one. */
  readonly edges: readonly number[];
  readonly source: SeriesSource;
  /** Spans of more records are not read one by one. */
  readonly maxRecords: number;
}

/** A series of a device, as it is known. */
interface KnownSeries extends SeriesKey {
  /** Unix milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly last: number;
}

/** Whether more records are left, or another process adds them. */
export type RollUpOutcome = "more" | "done" | "elsewhere";

/** What a device has. */
export interface SeriesOfDevice {
  readonly series: readonly KnownSeries[];
  /** About how many numbers had no series, since the device has the most it may. */
  readonly leftOut: number;
}

/** Which buckets are too old, Unix milliseconds, exclusive. */
export interface BucketExpiry {
  readonly minutes: number;
  readonly hours: number;
}

/**
 * Numbers of the records of the same store, in buckets. A record is in the buckets of its series exactly once, or is
 * read itself; so an answer is the same before, while and after it is rolled up.
 */
export interface SeriesStore {
  /** Adds the next records to their buckets. @throws StoreUnavailable */
  rollUp(): Promise<RollUpOutcome>;
  /**
   * The totals of each span, null for one without numbers; null for more records than may be read. Never blocks
   * ingestion. @throws StoreUnavailable
   */
  readSpans(query: SpansQuery, signal: AbortSignal): Promise<readonly (SeriesTotals | null)[] | null>;
  /** The series of a device that are rolled up, by topic and pointer. @throws StoreUnavailable */
  listSeries(deviceId: string, caller: string, signal: AbortSignal): Promise<SeriesOfDevice>;
  /**
   * Deletes up to `limit` series of a device and returns how many. No roll-up is under way meanwhile: it might bring
   * numbers back of records that were deleted since it read them.
   */
  deleteSeriesOf(deviceId: string, limit: number): Promise<number>;
  /** Deletes old buckets of all series, in steps between which ingestion goes on. */
  expireBuckets(before: BucketExpiry, signal: AbortSignal): Promise<void>;
  /** While all buckets together have more bytes, the device that has most of them loses its oldest hours. */
  shrinkSeries(maxBytes: number, signal: AbortSignal): Promise<void>;
}
