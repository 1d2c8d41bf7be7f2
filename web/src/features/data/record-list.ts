import type { DataRecord } from "@devmesh/contracts/model/data-record";

/** Maximum of records in a list. */
export const mostRecords = 10_000;

/** Maximum of characters of payload in a list. */
const mostCharacters = 32 * 1024 * 1024;

/** Records read so far, each once, newest first. */
export interface RecordList {
  readonly records: readonly DataRecord[];
  /** There may be earlier ones on the server. */
  readonly hasEarlier: boolean;
  /** The list has its maximum size; a narrower selection has earlier records. */
  readonly isFull: boolean;
}

export const emptyList: RecordList = { records: [], hasEarlier: true, isFull: false };

/**
 * The list with more records, in whatever order they came and however often; beyond what a list may hold the oldest
 * ones go. The list itself when nothing is new.
 */
export function withRecords(
  list: RecordList,
  more: readonly DataRecord[],
  hasEarlier: boolean = list.hasEarlier,
): RecordList {
  const known = new Set(list.records.map(({ id }) => id));
  const fresh = more.filter(({ id }) => !known.has(id) && known.add(id));
  if (fresh.length === 0 && hasEarlier === list.hasEarlier) return list;
  const merged = [...list.records, ...fresh].sort((one, other) => other.id - one.id);
  const kept = heldOf(merged);
  const dropped = kept < merged.length;
  return {
    records: dropped ? merged.slice(0, kept) : merged,
    hasEarlier: hasEarlier || dropped,
    isFull: dropped || kept >= mostRecords,
  };
}

/** Number of the newest records that fit into a list: at least one. */
function heldOf(records: readonly DataRecord[]): number {
  let characters = 0;
  for (const [index, { message }] of records.entries()) {
    characters += message.length;
    if (index >= mostRecords || (characters > mostCharacters && index > 0)) return index;
  }
  return records.length;
}
