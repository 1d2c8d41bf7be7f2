import type { RecordSelection } from "../data-store.ts";
import type { Segment } from "./schema.ts";

/** Ids of one segment that are still to be read; both inclusive. */
export interface SegmentPart {
  readonly segment: Segment;
  readonly low: number;
  readonly high: number;
  readonly whole: boolean;
}

/** Segments in the order of reading. */
export function inOrder(segments: readonly Segment[], order: "asc" | "desc"): readonly Segment[] {
  return order === "asc" ? segments : segments.toReversed();
}

/** What of a segment follows the id `at` in that order; all of it when `at` is null, null when nothing follows. */
export function partOf(segment: Segment, order: "asc" | "desc", at: number | null): SegmentPart | null {
  const low = order === "asc" && at !== null ? Math.max(segment.first_id, at + 1) : segment.first_id;
  const high = order === "desc" && at !== null ? Math.min(segment.last_id, at - 1) : segment.last_id;
  if (low > high) return null;
  return { segment, low, high, whole: low === segment.first_id && high === segment.last_id };
}

/** Whether a segment may have records of that time. */
export function mayHold(segment: Segment, { since, until }: RecordSelection): boolean {
  if (segment.records === 0) return false;
  return (
    (since === undefined || segment.latest >= since) && (until === undefined || segment.earliest < until)
  );
}

/** Whether each record of a segment is of that time. */
export function isWithin(segment: Segment, { since, until }: RecordSelection): boolean {
  return (
    (since === undefined || segment.earliest >= since) && (until === undefined || segment.latest < until)
  );
}
