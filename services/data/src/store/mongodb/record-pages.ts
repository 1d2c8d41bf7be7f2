import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Filter } from "mongodb";
import type { DataStore, RecordPageRequest } from "../data-store.ts";
import type { FairQueue } from "../fair-queue.ts";
import { cursorOf, type Position, type ReadPosition, type SeekPosition, startOf } from "../position.ts";
import type {
  CallOptions,
  Collections,
  RecordDocument,
  SegmentDocument,
  StoredDocument,
} from "./collections.ts";
import { idsOnTopics, planOf, type RecordPlan, sortOf } from "./record-plan.ts";
import type { IdRange, SearchSegments } from "./search-segments.ts";
import type { Writer } from "./writer.ts";

/**
 * Sends one command of a search through the queue. It has its own timeout, not the caller's signal: a caller that goes
 * away keeps its permit until the server is done.
 */
type Ask = <T>(command: (options: CallOptions) => Promise<T>) => Promise<T>;

/** Segments of one look-up in the search index. */
const segmentBatchSize = 16;
/** The most ids of one query, records of one fetch, and ids that are fetched to count back from the end. */
const batchSize = 1_000;

/** A part of a search, in its order: all that matches between two ids. */
interface Part extends IdRange {
  /** Where matches may be; null when there can be none. */
  readonly where: Filter<StoredDocument> | null;
  /** Whether nothing can follow. */
  readonly last: boolean;
}

/** Reads pages. A page reads only ids that are final at its beginning, so it shows one state. */
export function createPageReader(
  collections: Collections,
  writer: Writer,
  segments: SearchSegments,
  queue: FairQueue,
): DataStore["readPage"] {
  const { records } = collections;
  /** A moving average of the JSON size of a record, to estimate how many to fetch. */
  let usualBytes = 1_024;

  return async (selection, page, signal) => {
    const items: DataRecord[] = [];
    let position: Position = startOf(page);
    if (page.limit === 0) return { next: null, items };
    // No stored text contains half a character.
    if (selection.filter?.isWellFormed() === false) return { next: null, items };
    const end = performance.now() + page.searchMs;
    const inTime = () => performance.now() < end;
    const plan = planOf(selection);
    const visible = await writer.visible(signal);
    const ask: Ask = (command) => queue.run(page.caller, signal, () => collections.run(command));
    const search = createSearch(plan, selection.order, visible, ask);
    if (position.kind === "seek") {
      position = await seek(search, position, inTime);
      if (position.kind === "seek") return { next: cursorOf(position), items };
    }
    const next = await fill(search, position, page, items, inTime);
    return { next: next === null ? null : cursorOf(next), items };
  };

  /** Counts back from the end of the order to the record where a negative `skip` begins. */
  async function seek(search: Search, position: SeekPosition, inTime: () => boolean): Promise<Position> {
    const { order } = search;
    const backwards = order === "asc" ? "desc" : "asc";
    let { at, found } = position;
    const { wanted } = position;
    let worked = false;
    for await (const part of search.parts(backwards, at)) {
      if (worked && !inTime()) return { kind: "seek", at, found, wanted };
      worked = true;
      const { counted, id } = await search.countBack(part, backwards, wanted - found);
      if (id !== null) {
        const before = order === "asc" ? id - 1 : id + 1;
        return { kind: "read", at: before, skip: 0, remaining: wanted, skipped: true };
      }
      found += counted;
      at = backwards === "desc" ? part.from : part.to;
    }
    return { kind: "read", at: null, skip: 0, remaining: found, skipped: true };
  }

  /** Reads until enough is found, the page is full, the time is over or the end is reached; returns where to go on. */
  async function fill(
    search: Search,
    position: ReadPosition,
    page: RecordPageRequest,
    items: DataRecord[],
    inTime: () => boolean,
  ): Promise<ReadPosition | null> {
    const { order } = search;
    let { at, skip, remaining } = position;
    let bytes = 0;
    const stopped = () => (remaining === 0 ? null : { ...position, at, skip, remaining });
    const wanted = () => Math.min(page.limit ?? Infinity, position.remaining ?? Infinity) - items.length;
    let worked = false;
    for await (const part of search.parts(order, at)) {
      if (wanted() <= 0 || (worked && !inTime())) return stopped();
      worked = true;
      if (skip > 0 && !part.last) {
        const skippable = await search.count(part, skip);
        if (skippable < skip) {
          skip -= skippable;
          at = order === "asc" ? part.to : part.from;
          continue;
        }
      }
      for (let rest: Part | null = part; rest !== null && wanted() > 0; ) {
        const room = Math.max(0, Math.ceil((page.maxBytes - bytes) / usualBytes));
        const most = Math.min(wanted(), room + 1, batchSize);
        const found = await search.fetch(rest, most, skip);
        skip = 0;
        for (const record of found.map(recordOf)) {
          const weight = Buffer.byteLength(JSON.stringify(record)) + 1;
          if (bytes + weight > page.maxBytes && items.length > 0) return stopped();
          items.push(record);
          bytes += weight;
          usualBytes += (weight - usualBytes) / 16;
          at = record.id;
          if (remaining !== null) remaining--;
        }
        rest = found.length < most || at === null ? null : restOf(part, order, at);
      }
      if (wanted() > 0) at = order === "asc" ? part.to : part.from;
    }
    return wanted() <= 0 ? stopped() : null;
  }

  function createSearch(plan: RecordPlan, order: "asc" | "desc", visible: number, ask: Ask): Search {
    const conditionsOf = ({ where }: Part) => ({ $and: [where ?? {}, plan.conditions] });

    async function* parts(direction: "asc" | "desc", at: number | null): AsyncGenerator<Part> {
      const from = direction === "asc" && at !== null ? at + 1 : 1;
      const to = direction === "desc" && at !== null ? Math.min(visible, at - 1) : visible;
      if (from > to) return;
      const whole = { from, to };
      if (plan.exact) {
        yield { ...whole, where: between(whole), last: true };
        return;
      }
      const { pattern } = plan;
      const ids =
        pattern === null ? null : await ask((options) => idsOnTopics(collections, pattern, options));
      if (ids !== null) {
        yield* partsOfIds(
          ids.filter((id) => id >= from && id <= to),
          direction,
        );
        return;
      }
      const all = await ask((options) => segments.list(whole, options));
      const indexedTo = all.at(-1)?.to ?? from - 1;
      const young: Part[] =
        indexedTo < to ? [partBetween({ from: Math.max(from, indexedTo + 1), to }, direction === "asc")] : [];
      if (direction === "desc") yield* young;
      yield* partsOfSegments(direction === "asc" ? all : all.toReversed(), whole, direction);
      if (direction === "asc") yield* young;
    }

    async function* partsOfSegments(
      inOrder: readonly SegmentDocument[],
      whole: IdRange,
      direction: "asc" | "desc",
    ): AsyncGenerator<Part> {
      for (let first = 0; first < inOrder.length; first += segmentBatchSize) {
        const some = inOrder.slice(first, first + segmentBatchSize).filter(mayHold);
        const { searched } = plan;
        const found =
          searched === null ? null : await ask((options) => segments.candidates(some, searched, options));
        for (const [at, segment] of some.entries()) {
          const range = cut({ from: segment._id, to: segment.to }, whole);
          if (range === null) continue;
          const ranges = found?.[at]?.flatMap((candidate) => cut(candidate, whole) ?? []) ?? [range];
          for (const part of direction === "asc" ? ranges : ranges.toReversed())
            yield partBetween(part, false);
          yield { ...range, where: null, last: false };
        }
      }
    }

    function* partsOfIds(ids: readonly number[], direction: "asc" | "desc"): Generator<Part> {
      const inOrder = direction === "asc" ? ids : ids.toReversed();
      for (let first = 0; first < inOrder.length; first += batchSize) {
        const some = inOrder.slice(first, first + batchSize);
        const [from = 0, to = 0] = [Math.min(...some), Math.max(...some)];
        yield { from, to, where: { _id: { $in: some } }, last: first + batchSize >= inOrder.length };
      }
    }

    function mayHold({ earliest, latest }: SegmentDocument): boolean {
      if (earliest === null || latest === null) return false;
      return (plan.since === null || latest >= plan.since) && (plan.until === null || earliest < plan.until);
    }

    async function count(part: Part, most: number): Promise<number> {
      if (part.where === null) return 0;
      const pipeline = [{ $match: conditionsOf(part) }, { $limit: most }, { $count: "matches" }];
      const [counted] = await ask((options) =>
        records.aggregate<{ matches: number }>(pipeline, { ...options, hint: plan.index }).toArray(),
      );
      return counted?.matches ?? 0;
    }

    return {
      order,
      parts,
      count,
      async countBack(part, direction, most) {
        if (part.where === null) return { counted: 0, id: null };
        const idsFrom = (skip: number, limit: number) =>
          ask((options) =>
            records
              .find(conditionsOf(part), { ...options, hint: plan.index, batchSize: limit })
              .project<{ _id: number }>({ _id: 1 })
              .sort(sortOf(plan, direction))
              .skip(skip)
              .limit(limit)
              .toArray(),
          );
        if (most <= batchSize) {
          const ids = await idsFrom(0, most);
          return { counted: ids.length, id: ids.length === most ? (ids.at(-1)?._id ?? null) : null };
        }
        const [last] = await idsFrom(most - 1, 1);
        if (last !== undefined) return { counted: most, id: last._id };
        return { counted: await count(part, most), id: null };
      },
      async fetch(part, most, skip) {
        if (part.where === null) return [];
        return await ask((options) =>
          records
            .find(conditionsOf(part), { ...options, hint: plan.index, batchSize: most })
            .project<RecordDocument>({ stream: 0, sequence: 0, weight: 0 })
            .sort(sortOf(plan, order))
            .skip(skip)
            .limit(most)
            .toArray(),
        );
      },
    };
  }
}

/** The search for one selection, part by part. */
interface Search {
  readonly order: "asc" | "desc";
  /** The parts after `at`, in that direction. */
  parts(direction: "asc" | "desc", at: number | null): AsyncGenerator<Part>;
  /** How many records of the part match, counted up to `most`. */
  count(part: Part, most: number): Promise<number>;
  /** Counts matches in that direction up to `most`, and returns the id of the last one if there are so many. */
  countBack(
    part: Part,
    direction: "asc" | "desc",
    most: number,
  ): Promise<{ readonly counted: number; readonly id: number | null }>;
  /** Matches of the part in the order asked for. */
  fetch(part: Part, most: number, skip: number): Promise<readonly RecordDocument[]>;
}

function between({ from, to }: IdRange): Filter<StoredDocument> {
  return { _id: { $gte: from, $lte: to } };
}

function partBetween(range: IdRange, last: boolean): Part {
  return { ...range, where: between(range), last };
}

/** The intersection of two ranges; null when it is empty. */
function cut(range: IdRange, { from, to }: IdRange): IdRange | null {
  const both = { from: Math.max(range.from, from), to: Math.min(range.to, to) };
  return both.from > both.to ? null : both;
}

/** What of a part follows the record `at`. */
function restOf(part: Part, order: "asc" | "desc", at: number): Part | null {
  const ahead = cut(part, order === "asc" ? { from: at + 1, to: part.to } : { from: part.from, to: at - 1 });
  if (ahead === null || part.where === null) return null;
  return { ...ahead, last: part.last, where: { $and: [part.where, between(ahead)] } };
}

/** A record as queries return it. */
export function recordOf({ _id, time, device, topic, text, payload }: RecordDocument): DataRecord {
  const record = { id: _id, timestamp: time.toISOString(), device_id: device, topic };
  if (payload === undefined) return { ...record, message: text ?? "" };
  return { ...record, message: Buffer.from(payload.value()).toString("base64"), encoding: "base64" };
}
