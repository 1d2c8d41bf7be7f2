import { type DataRecord, maxRecordLimit } from "@devmesh/contracts/model/data-record";
import type { ApiClient } from "../../api/api-client.ts";
import { readEarlier, readLater } from "./record-pages.ts";
import { type RecordChoice, selects } from "./record-selection.ts";
import { gatherNumbers, type TopicNumbers } from "./topic-numbers.ts";

/** Intended size of a page in characters of payload; the records read before give the number of records. */
const pageCharacters = 2_000_000;

/** Maximum of characters of payload that are read for a chart. */
const mostCharacters = 64_000_000;

/** Records of the first page: few, for a fast first chart. */
const firstPage = 500;

/** Minimum of records of a page: those of one millisecond come again with the next page. */
const smallestPage = 20;

/** Maximum of ids that are kept of records from the stream. */
const mostKnown = 10_000;

/** The numbers of a selection read so far. */
export interface ChartedNumbers {
  readonly topics: ReadonlyMap<string, TopicNumbers>;
  readonly hasMoreTopics: boolean;
  /** Records that were read, also those without numbers. */
  readonly records: number;
  /** The selection has earlier records that are left out, as there are too many. */
  readonly isCut: boolean;
}

/** What {@link chartRecords} is made with. */
export interface RecordChartOptions {
  readonly api: ApiClient;
  readonly selection: RecordChoice;
  /** Maximum of records to be read: the newest ones. */
  readonly mostRecords: number;
  /** Called after each change. */
  readonly onChange: (numbers: ChartedNumbers) => void;
}

/**
 * Numbers of records, read backwards from the newest, and of those that are stored meanwhile: each record counts once.
 */
export interface RecordChart {
  /** Reads the selection, once, or again after a failure. Rejects with the error or the reason of the signal. */
  readonly read: (signal: AbortSignal) => Promise<void>;
  /** Reads the records stored since; returns false if there are too many for it. Does nothing before the first page. */
  readonly catchUp: (signal: AbortSignal) => Promise<boolean>;
  /** Adds records of the selection from the stream. Does nothing before the first page. */
  readonly take: (records: readonly DataRecord[]) => void;
  /** Drops older records; Unix ms. */
  readonly dropBefore: (at: number) => void;
}

/** A chart before its first read. */
export function chartRecords({ api, selection, mostRecords, onChange }: RecordChartOptions): RecordChart {
  const numbers = gatherNumbers();
  let count = 0;
  let characters = 0;
  let oldest: DataRecord | null = null;
  let isCut = false;
  /** Id up to which all records are read; null before the first page, 0 if that is empty. */
  let readTo: number | null = null;
  /** Ids of newer records, from the stream. */
  const known = new Set<number>();

  function add(records: readonly DataRecord[]): void {
    numbers.add(records);
    count += records.length;
  }

  function show(): void {
    onChange({ topics: numbers.topics(), hasMoreTopics: numbers.hasMoreTopics(), records: count, isCut });
  }

  /** Continues after `id`, and drops the ids before it. */
  function advance(id: number): void {
    readTo = id;
    for (const each of known) if (each <= id) known.delete(each);
  }

  return {
    async read(signal) {
      let pageSize = Math.min(firstPage, mostRecords);
      for (;;) {
        const page = await readEarlier(api, selection, oldest, signal, pageSize);
        signal.throwIfAborted();
        if (readTo === null) advance(page.records[0]?.id ?? 0);
        const taken = page.records.slice(0, mostRecords - count);
        const hasEarlier = page.hasEarlier || taken.length < page.records.length;
        add(taken);
        oldest = taken.at(-1) ?? oldest;
        for (const { message } of taken) characters += message.length;
        isCut = hasEarlier && (count >= mostRecords || characters >= mostCharacters);
        show();
        if (!hasEarlier || isCut) return;
        const fitting = Math.floor(pageCharacters / Math.max(1, characters / count));
        pageSize = Math.max(smallestPage, Math.min(fitting, maxRecordLimit, mostRecords - count));
      }
    },
    async catchUp(signal) {
      if (readTo === null) return true;
      const later = await readLater(api, selection, readTo, signal);
      signal.throwIfAborted();
      if (later === null) return false;
      const from = readTo;
      add(later.filter(({ id }) => id > from && !known.has(id)));
      advance(Math.max(from, later.at(-1)?.id ?? from));
      show();
      return true;
    },
    take(records) {
      if (readTo === null) return;
      const from = readTo;
      const fresh = records.filter(
        (record) => record.id > from && !known.has(record.id) && selects(selection, record),
      );
      if (fresh.length === 0) return;
      for (const { id } of fresh) known.add(id);
      add(fresh);
      // Records come almost in the order of their ids, so much older ones do not come again.
      if (known.size > mostKnown)
        advance([...known].sort((one, other) => one - other)[mostKnown / 2] ?? from);
      show();
    },
    dropBefore(at) {
      numbers.dropBefore(at);
      show();
    },
  };
}
