import { openMongo } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { MongoUrl } from "@devmesh/store/store-url";
import type { DataStore } from "./data-store.ts";
import { createFairQueue } from "./fair-queue.ts";
import { collectionDeclarations, collectionsOf, recordIndexes } from "./mongodb/collections.ts";
import { createLatestRecords } from "./mongodb/latest-records.ts";
import { createRecordFollowing } from "./mongodb/record-following.ts";
import { createPageReader } from "./mongodb/record-pages.ts";
import { createRecordRemoval } from "./mongodb/record-removal.ts";
import { appendRecords } from "./mongodb/record-writing.ts";
import { createRefusals } from "./mongodb/refusals.ts";
import { createSearchSegments, type MongoSegmentBounds } from "./mongodb/search-segments.ts";
import { createSeries } from "./mongodb/series.ts";
import { createWriter } from "./mongodb/writer.ts";

/** The layout of a MongoDB data store. */
export interface MongoDataStoreOptions extends Partial<MongoSegmentBounds> {
  /** How long a process that died in the middle of a batch blocks the others, in milliseconds. */
  readonly leaseMs?: number;
}

const defaults: Required<MongoDataStoreOptions> = {
  segmentIds: 65_536,
  segmentBytes: 64 * 1024 * 1024,
  leaseMs: 5_000,
};

/** Opens the store that all replicas share (ADR 18). @throws StoreUnavailable when no server answers in time */
export async function openMongoDataStore(
  url: MongoUrl,
  signal: AbortSignal,
  options: MongoDataStoreOptions = {},
): Promise<DataStore> {
  const bounds = { ...defaults, ...options };
  const store = await openMongo(url, collectionDeclarations, signal);
  const collections = collectionsOf(store);
  const writer = await createWriter(store, collections, bounds.leaseMs);
  const segments = createSearchSegments(collections, bounds);
  const refusals = createRefusals(collections, writer);
  const queue = createFairQueue({ limit: maxCommands, perCaller: maxCommands / 2 });
  const readPage = createPageReader(collections, writer, segments, queue);
  const closing = new AbortController();

  /** Stored by this process since it last looked for a complete segment; at first, there may be one. */
  let stored = { ids: Number.POSITIVE_INFINITY, weight: 0 };
  let building: Promise<void> | null = null;

  /** Builds segments in the background. One that fails is built later: a search works without it. */
  function buildSegments(ids: number, weight: number): void {
    stored = { ids: stored.ids + ids, weight: stored.weight + weight };
    const isEnough = stored.ids >= bounds.segmentIds / 4 || stored.weight >= bounds.segmentBytes / 4;
    if (building !== null || !isEnough) return;
    stored = { ids: 0, weight: 0 };
    building = writer
      .visible(closing.signal)
      .then((visible) => segments.build(visible, closing.signal))
      .catch(() => undefined)
      .finally(() => {
        building = null;
      });
  }

  const series = await createSeries(collections, writer, segments, queue, {
    closing: closing.signal,
    leaseMs: partTurns * bounds.leaseMs,
  });
  return {
    ...createRecordRemoval(collections, segments),
    ...refusals,
    ...createLatestRecords(collections, writer, queue),
    ...createRecordFollowing(collections, writer, queue),
    ...series,
    async finishPurge(deviceId) {
      await segments.forget(deviceId);
      await refusals.finishPurge(deviceId);
    },
    async append(messages) {
      if (messages.length === 0) return { stored: 0, repeated: 0, refused: 0, ids: [] };
      const outcome = await appendRecords(collections, writer, refusals, messages);
      const bytes = messages.reduce((sum, { payload }) => sum + payload.length, 0);
      if (outcome.stored > 0) buildSegments(messages.length, bytes);
      return outcome;
    },
    async lastSequence(stream) {
      const last = await collections.run((options) =>
        collections.records.findOne(
          { stream, sequence: { $exists: true } },
          { ...options, hint: recordIndexes.delivery, sort: { sequence: -1 }, projection: { sequence: 1 } },
        ),
      );
      return last?.sequence ?? null;
    },
    readPage: (selection, page, signal) =>
      readPage(selection, page, AbortSignal.any([signal, closing.signal])),
    async ping() {
      await collections.run(() => store.ping(AbortSignal.timeout(pingTimeoutMs)));
    },
    async checkWritable() {
      await writer.write(0, async () => undefined);
    },
    async close() {
      closing.abort(new StoreUnavailable("the store is closed"));
      queue.close();
      await building;
      await store.close();
    },
  };
}

/** Commands of searches that this process has the server work on at a time. */
const maxCommands = 4;

/** How much longer than a batch a part of a roll-up may take. */
const partTurns = 6;

const pingTimeoutMs = 2_000;
