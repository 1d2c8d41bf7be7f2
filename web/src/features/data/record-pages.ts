import { type DataRecord, maxRecordLimit, maxSkip } from "@devmesh/contracts/model/data-record";
import type { ApiClient } from "../../api/api-client.ts";
import { queryOf, type RecordChoice } from "./record-selection.ts";

/** Default number of records in a page. */
const defaultPageSize = 200;

/** Records before others, newest first. */
export interface EarlierRecords {
  readonly records: readonly DataRecord[];
  /** There may be still earlier ones. */
  readonly hasEarlier: boolean;
}

/**
 * The newest records of a selection, or those before `oldest`. A page ends at the time of the oldest known record, so
 * that each page costs the same; it reaches further back only if one millisecond has more records than a page.
 */
export async function readEarlier(
  api: ApiClient,
  selection: RecordChoice,
  oldest: DataRecord | null,
  signal: AbortSignal,
  pageSize: number = defaultPageSize,
): Promise<EarlierRecords> {
  const until = oldest === null ? selection.until : justAfter(oldest.timestamp, selection.until);
  const query = queryOf({ ...selection, until });
  let reach = pageSize;
  let firstBefore: number | null = null;
  for (;;) {
    const limit = Math.min(reach, maxRecordLimit);
    const records = await api.call("queryRecords", { query: { ...query, skip: -reach, limit }, signal });
    const earlier = oldest === null ? records : records.filter(({ id }) => id < oldest.id);
    const first = records[0]?.id ?? null;
    if (earlier.length > 0) return { records: earlier.reverse(), hasEarlier: records.length === limit };
    if (records.length < limit || first === firstBefore || reach >= maxSkip)
      return { records: [], hasEarlier: false };
    firstBefore = first;
    reach = Math.min(reach < maxRecordLimit ? maxRecordLimit : reach + maxRecordLimit, maxSkip);
  }
}

/**
 * The records of a selection that were stored after the one with the id `newest`, oldest first; null when there are
 * too many.
 */
export async function readLater(
  api: ApiClient,
  selection: RecordChoice,
  newest: number,
  signal: AbortSignal,
): Promise<readonly DataRecord[] | null> {
  const limit = 1_000;
  const query = { ...queryOf(selection), after: String(newest), limit };
  const records = await api.call("queryRecords", { query, signal });
  return records.length < limit ? records : null;
}

/** The millisecond after `timestamp`, but not after `until`. */
function justAfter(timestamp: string, until: string): string {
  const after = Date.parse(timestamp) + 1;
  return new Date(until === "" ? after : Math.min(after, Date.parse(until))).toISOString();
}
