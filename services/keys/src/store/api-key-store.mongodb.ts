import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import type { ApiKeyStore, StoredApiKey } from "./api-key-store.ts";
import { bytesAsBuffers } from "./bytes.mongodb.ts";
import { type CredentialDocument, credentialCollection } from "./credential-store.mongodb.ts";

interface ApiKeyDocument extends Omit<StoredApiKey, "id"> {
  readonly _id: string;
  /** Only on the key that `insertMasterIfNone` stored; unique. */
  readonly made_at_start?: true;
  /** The lease of a deletion of this master key that is under way; void after `until` (Unix ms). */
  readonly mark?: { readonly token: string; readonly until: number };
}

const oneMadeAtStart = "one_made_at_start";
const oneOfDigest = "one_of_digest";

/** The collection of master and device keys. */
export const apiKeyCollection = {
  name: "api_keys",
  indexes: [
    { name: oneOfDigest, key: { digest: 1 }, unique: true },
    { name: "of_device", key: { device_id: 1, _id: 1 } },
    {
      name: oneMadeAtStart,
      key: { made_at_start: 1 },
      unique: true,
      partialFilterExpression: { made_at_start: true },
    },
  ],
} as const satisfies CollectionDeclaration;

/** The adapter's queries; exported so that a test can check their plans. */
export const apiKeyQueries = {
  byDigest: (digest: Uint8Array) => ({ digest }),
  after: (id: string) => ({ _id: { $gt: id } }),
  ofDevice: (deviceId: string) => ({ device_id: deviceId }),
  validMasters: (now: number) => ({
    device_id: null,
    $or: [{ expires_at: null }, { expires_at: { $gt: now } }],
  }),
} as const;

/** How long the lease of a deletion lasts, in milliseconds: longer than a call. */
const leaseMs = 15_000;
/** Delay before a deletion that meets others looks again, in milliseconds. */
const retryMs = 10;
/** Keys of one step of the search for orphans. */
const orphanPage = 1_000;

/** Master and device keys in MongoDB. */
export function createMongoApiKeyStore({ db, run }: MongoStore): ApiKeyStore {
  const keys = db.collection<ApiKeyDocument>(apiKeyCollection.name, bytesAsBuffers);
  const credentials = db.collection<CredentialDocument>(credentialCollection.name, bytesAsBuffers);

  async function release(id: string, token: string, signal: AbortSignal): Promise<void> {
    await run(signal, () => keys.updateOne({ _id: id, "mark.token": token }, { $unset: { mark: 1 } }));
  }

  /**
   * Marks a master key and deletes it once there is another valid key without a mark, which no deletion under way can
   * remove. Where all valid keys are marked, the deletion of the lowest id waits and the others give up.
   */
  async function deleteMaster(id: string, now: number, signal: AbortSignal) {
    const token = randomUUID();
    const mark = { token, until: now + leaseMs };
    const { matchedCount } = await run(signal, () =>
      keys.updateOne(
        { _id: id, $or: [{ mark: { $exists: false } }, { "mark.until": { $lte: now } }] },
        { $set: { mark } },
      ),
    );
    if (matchedCount === 0) return "in_the_way";
    const others = { ...apiKeyQueries.validMasters(now), _id: { $ne: id } };
    for (;;) {
      const unmarked = await run(signal, () =>
        keys.findOne({ ...others, mark: { $exists: false } }, { projection: { _id: 1 }, signal }),
      );
      if (unmarked !== null) {
        // Without the mark its lease had expired and another deletion cleared it.
        const { deletedCount } = await run(signal, () => keys.deleteOne({ _id: id, "mark.token": token }));
        return deletedCount === 1 ? "deleted" : "in_the_way";
      }
      const marked = await run(signal, () =>
        keys.find(others, { projection: { _id: 1, mark: 1 }, signal }).toArray(),
      );
      if (marked.length === 0) {
        await release(id, token, signal);
        return "last_master_key";
      }
      const abandoned = marked.filter((other) => other.mark !== undefined && other.mark.until <= now);
      for (const { _id, mark: left } of abandoned) await release(_id, left?.token ?? "", signal);
      if (abandoned.length === 0 && marked.some((other) => other.mark !== undefined && other._id < id)) {
        await release(id, token, signal);
        return "in_the_way";
      }
      if (abandoned.length === 0) await pause(retryMs, signal);
    }
  }

  return {
    insert: (key, signal) => insert(documentOf(key), signal),
    async insertMasterIfNone(key, now, signal) {
      for (;;) {
        const oldest = await run(signal, () =>
          keys.findOne(apiKeyQueries.validMasters(now), { sort: { _id: 1 }, signal }),
        );
        if (oldest !== null) return apiKeyOf(oldest);
        await insert({ ...documentOf(key), made_at_start: true }, signal);
      }
    },
    async find(id, signal) {
      const found = await run(signal, () => keys.findOne({ _id: id }, { signal }));
      return found && apiKeyOf(found);
    },
    async findByDigest(digest, signal) {
      const found = await run(signal, () => keys.findOne(apiKeyQueries.byDigest(digest), { signal }));
      return found && apiKeyOf(found);
    },
    async list(after, limit, signal) {
      const query = apiKeyQueries.after(after ?? "");
      const found = await run(signal, () =>
        keys.find(query, { signal }).sort({ _id: 1 }).limit(limit).toArray(),
      );
      return found.map(apiKeyOf);
    },
    count: (signal) => run(signal, () => keys.countDocuments({}, { signal })),
    async delete(id, now, signal) {
      for (;;) {
        const key = await run(signal, () => keys.findOne({ _id: id }, { signal }));
        if (key === null) return "not_found";
        if (key.device_id !== null || (key.expires_at !== null && key.expires_at <= now)) {
          const { deletedCount } = await run(signal, () => keys.deleteOne({ _id: id }));
          return deletedCount === 1 ? "deleted" : "not_found";
        }
        const ending = await deleteMaster(id, now, signal);
        if (ending !== "in_the_way") return ending;
        await pause(retryMs * (2 + 2 * Math.random()), signal);
      }
    },
    async listIdsOfDevice(deviceId, signal) {
      const options = { projection: { _id: 1 }, signal };
      const found = await run(signal, () =>
        keys.find(apiKeyQueries.ofDevice(deviceId), options).sort({ _id: 1 }).toArray(),
      );
      return found.map(({ _id }) => _id);
    },
    async deleteAll(ids, signal) {
      if (ids.length === 0) return;
      await run(signal, () => keys.deleteMany({ _id: { $in: [...ids] } }));
    },
    /** An epoch never comes back: a key with another one than the credentials read after it is an orphan for good. */
    async deleteOrphans(signal) {
      let deleted = 0;
      for (let after: string | undefined = ""; after !== undefined; ) {
        const query = apiKeyQueries.after(after);
        const options = { projection: { device_id: 1, epoch: 1 }, signal };
        const page = await run(signal, () =>
          keys.find(query, options).sort({ _id: 1 }).limit(orphanPage).toArray(),
        );
        after = page.at(-1)?._id;
        const ofDevices = page.filter(({ device_id }) => device_id !== null);
        const ids = [...new Set(ofDevices.map(({ device_id }) => device_id ?? ""))];
        if (ids.length === 0) continue;
        const held = await run(signal, () =>
          credentials.find({ _id: { $in: ids } }, { projection: { epoch: 1 }, signal }).toArray(),
        );
        const epochs = new Map(held.map(({ _id, epoch }) => [_id, epoch]));
        const orphans = ofDevices.filter(({ device_id, epoch }) => epochs.get(device_id ?? "") !== epoch);
        if (orphans.length === 0) continue;
        const gone = await run(signal, () =>
          keys.deleteMany({ _id: { $in: orphans.map(({ _id }) => _id) } }),
        );
        deleted += gone.deletedCount;
      }
      return deleted;
    },
    async recordUses(uses, signal) {
      if (uses.length === 0) return;
      // In one order, so that two replicas do not deadlock where a batch locks what it writes.
      const inOrder = uses.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const updates = inOrder.map(({ id, at }) => ({
        updateOne: { filter: { _id: id }, update: { $max: { last_used: at } } },
      }));
      await run(signal, () => keys.bulkWrite(updates, { ordered: false }));
    },
  };

  function insert(document: ApiKeyDocument, signal: AbortSignal): Promise<boolean> {
    const inserted = run(signal, () => keys.insertOne(document));
    return unlessDuplicate(inserted, oneOfDigest, oneMadeAtStart);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

function documentOf({ id, ...key }: StoredApiKey): ApiKeyDocument {
  return { _id: id, ...key };
}

function apiKeyOf({ _id: id, made_at_start, mark, ...key }: ApiKeyDocument): StoredApiKey {
  return { id, ...key };
}
