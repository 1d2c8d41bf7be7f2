import { type DataRecord, maxRecordLimit } from "@devmesh/contracts/model/data-record";
import type { ApiClient } from "../api/api-client.ts";
import { readEarlier, readLater } from "./record-pages.ts";
import { type RecordSelection, selects } from "./record-selection.ts";
import { gatherNumbers, type TopicNumbers } from "./topic-numbers.ts";

/** Most characters of payload that a page should hold; how many records that makes is told by those before it. */
const pageCharacters = 2_000_000;

/** Most characters of payload that are read for a chart. */
const mostCharacters = 64_000_000;

/** Records of the first page: few, so that something is shown soon. */
const firstPage = 500;

/** Fewest records of a page, as those of one millisecond come again with the next. */
const smallestPage = 20;

/** Most records that are known by their ids beside those that were read. */
const mostKnown = 10_000;

/** The numbers of a selection as far as they are read. */
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
  readonly selection: RecordSelection;
  /** Most records that are read: the newest ones. */
  readonly mostRecords: number;
  /** Called after each change, so often that something is seen to happen. */
  readonly onChange: (numbers: ChartedNumbers) => void;
}

/** Numbers of records, read backwards from the newest, and of those that are stored meanwhile: each record counts once. */
export interface RecordChart {
  /** Reads the selection. Rejects when it cannot be read, or with the signal's reason. To be called once, and again after it failed. */
  readonly read: (signal: AbortSignal) => Promise<void>;
  /** Reads what was stored since; false when that is too much, and the chart has to begin anew. Nothing before the first page is read. */
  readonly catchUp: (signal: AbortSignal) => Promise<boolean>;
  /** Takes up records as they are stored; those of other selections are left out, and all before the first page is read. */
  readonly take: (records: readonly DataRecord[]) => void;
  /** Forgets what is older; Unix ms. */
  readonly dropBefore: (at: number) => void;
}

/** A chart of which nothing is read yet. */
export function chartRecords({ api, selection, mostRecords, onChange }: RecordChartOptions): RecordChart {
  const numbers = gatherNumbers();
  let count = 0;
  let characters = 0;
  let oldest: DataRecord | null = null;
  let isCut = false;
  /** The newest record up to which all are read; null before the first page, 0 where that was empty. */
  let readTo: number | null = null;
  /** Records behind it that came otherwise. */
  const known = new Set<number>();

  function add(records: readonly DataRecord[]): void {
    numbers.add(records);
    count += records.length;
  }

  function show(): void {
    onChange({ topics: numbers.topics(), hasMoreTopics: numbers.hasMoreTopics(), records: count, isCut });
  }

  /** Goes on behind `id`, and forgets which records before it are known. */
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
      // They come in the order of their ids but for a few: what is far behind will not come again.
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
