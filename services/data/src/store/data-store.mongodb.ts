import { openMongo } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { MongoUrl } from "@devmesh/store/store-url";
import { createFairTurns } from "../query/fair-queue.ts";
import type { DataStore } from "./data-store.ts";
import { collectionDeclarations, collectionsOf, recordIndexes } from "./mongodb/collections.ts";
import { asWriter } from "./mongodb/deadline.ts";
import { createRecordPages } from "./mongodb/record-pages.ts";
import { createRecordRemoval } from "./mongodb/record-removal.ts";
import { appendRecords } from "./mongodb/record-writing.ts";
import { createRefusals } from "./mongodb/refusals.ts";
import { createSearchSegments, type SegmentBounds } from "./mongodb/search-segments.ts";
import { createWriter } from "./mongodb/writer.ts";

/** How a MongoDB data store is laid out, and how fast it gives a process up. */
export interface MongoDataStoreOptions extends Partial<SegmentBounds> {
  /** How long a process that has died in the middle of a batch holds up the others, in milliseconds. */
  readonly turnMs?: number;
}

const defaults: Required<MongoDataStoreOptions> = {
  segmentIds: 65_536,
  segmentBytes: 64 * 1024 * 1024,
  turnMs: 5_000,
};

/**
 * Opens the store that all replicas of the service share, making its collections and indexes if need be (ADR 18).
 * @throws StoreUnavailable when no server answers in time.
 */
export async function openMongoDataStore(
  url: MongoUrl,
  signal: AbortSignal,
  options: MongoDataStoreOptions = {},
): Promise<DataStore> {
  const bounds = { ...defaults, ...options };
  const store = await openMongo(url, collectionDeclarations, signal);
  const collections = collectionsOf(store.db);
  const writer = await createWriter({ store, collections, turnMs: bounds.turnMs });
  const segments = createSearchSegments(store, collections, bounds);
  const refusals = createRefusals(store, collections, writer);
  const turns = createFairTurns({ inAll: commandsAtOnce, ofOneCaller: commandsAtOnce / 2 });
  const pages = createRecordPages({ store, collections, writer, segments, turns });
  const closing = new AbortController();

  /** Ids and weight stored by this process since it last looked for a complete segment; at first, there may be one. */
  let unsealed = { ids: Number.POSITIVE_INFINITY, weight: 0 };
  let sealing: Promise<void> | null = null;

  /** Makes segments beside ingestion, one at a time. One that fails is made later: a search goes without it. */
  function sealSometimes(ids: number, weight: number): void {
    unsealed = { ids: unsealed.ids + ids, weight: unsealed.weight + weight };
    if (
      sealing !== null ||
      (unsealed.ids < bounds.segmentIds / 4 && unsealed.weight < bounds.segmentBytes / 4)
    )
      return;
    unsealed = { ids: 0, weight: 0 };
    sealing = seal()
      .catch(() => undefined)
      .finally(() => {
        sealing = null;
      });
  }

  async function seal(): Promise<void> {
    await segments.seal(await writer.visible(closing.signal), closing.signal);
  }

  return {
    ...createRecordRemoval(store, collections, segments),
    refuseDevice: refusals.refuseDevice,
    async finishPurge(deviceId) {
      await segments.forget(deviceId);
      await refusals.finishPurge(deviceId);
    },
    unfinishedPurges: refusals.unfinishedPurges,
    admitDevice: refusals.admitDevice,
    forgetAdmissions: refusals.forgetAdmissions,
    async append(messages) {
      if (messages.length === 0) return { stored: 0, repeated: 0, refused: 0, ids: [] };
      const outcome = await appendRecords({ store, collections, writer, refusals }, messages);
      const bytes = messages.reduce((sum, { payload }) => sum + payload.length, 0);
      if (outcome.stored > 0) sealSometimes(messages.length, bytes);
      return outcome;
    },
    async lastSequence(stream) {
      const last = await asWriter(store, (options) =>
        collections.records.findOne(
          { stream, sequence: { $exists: true } },
          { ...options, hint: recordIndexes.delivery, sort: { sequence: -1 }, projection: { sequence: 1 } },
        ),
      );
      return last?.sequence ?? null;
    },
    async readPage(selection, page, givenSignal) {
      const readSignal = AbortSignal.any([givenSignal, closing.signal]);
      return await pages.read(selection, page, readSignal);
    },
    async ping() {
      await asWriter(store, () => store.ping(AbortSignal.timeout(pingMs)));
    },
    async checkWritable() {
      await writer.takeTurn(0, async () => undefined);
    },
    async close() {
      closing.abort(new StoreUnavailable("the store is closed"));
      turns.close();
      await sealing;
      await store.close();
    },
  };
}

/** How many commands of searches this process has the server work on at one time. */
const commandsAtOnce = 4;

/** How long a server may take to answer that it is there, in milliseconds. */
const pingMs = 2_000;
