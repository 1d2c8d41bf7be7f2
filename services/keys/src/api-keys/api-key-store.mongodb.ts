import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type CollectionDeclaration, isDuplicateKey, type MongoStore } from "@devmesh/store/mongodb";
import { type CredentialDocument, credentialCollection } from "../credentials/credential-store.mongodb.ts";
import { bytesAsBuffers } from "../store/bytes.mongodb.ts";
import type { ApiKeyStore, StoredApiKey } from "./api-key-store.ts";

/** A key as it stands in the database; its `_id` is the key's. */
interface ApiKeyDocument {
  readonly _id: string;
  readonly digest: Uint8Array;
  readonly sealed: Uint8Array;
  /** Null for a master key, and then `epoch` is too. */
  readonly device_id: string | null;
  readonly epoch: string | null;
  readonly name: string | null;
  readonly created_at: number;
  readonly last_used: number | null;
  readonly expires_at: number | null;
  /** Only on the key that `insertMasterIfNone` stored: of those there is one at most. */
  readonly made_at_start?: true;
  /** Only while a deletion of this master key is under way. */
  readonly mark?: DeletionMark;
}

/**
 * Says that a master key may be gone any moment. It counts as none when `until` (Unix ms) is over: whoever set it has
 * died.
 */
interface DeletionMark {
  readonly token: string;
  readonly until: number;
}

const oneMadeAtStart = "one_made_at_start";
const oneOfDigest = "one_of_digest";

/** Where master and device keys stand. */
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

/** What the adapter finds keys by, by purpose; exported so that a test can ask the database for the plans. */
export const apiKeyQueries = {
  byDigest: (digest: Uint8Array) => ({ digest }),
  behind: (id: string) => ({ _id: { $gt: id } }),
  ofDevice: (deviceId: string) => ({ device_id: deviceId }),
  validMasters: (now: number) => ({
    device_id: null,
    $or: [{ expires_at: null }, { expires_at: { $gt: now } }],
  }),
} as const;

/** How long a mark on a master key holds without an end of its deletion, in milliseconds: longer than a call lasts. */
const markMs = 15_000;
/** How long a deletion that others are in the way of waits before it looks again, in milliseconds. */
const lookAgainMs = 10;
/** Keys that are looked at together when orphans are searched. */
const orphanPage = 1_000;

/** Master and device keys in MongoDB. */
export function createMongoApiKeyStore({ db, run }: MongoStore): ApiKeyStore {
  const keys = db.collection<ApiKeyDocument>(apiKeyCollection.name, bytesAsBuffers);
  const credentials = db.collection<CredentialDocument>(credentialCollection.name, bytesAsBuffers);

  /** Clears a mark if it is still that one. */
  async function takeBack(id: string, token: string, signal: AbortSignal): Promise<void> {
    await run(signal, () => keys.updateOne({ _id: id, "mark.token": token }, { $unset: { mark: 1 } }));
  }

  /**
   * Deletes a master key once another valid one is seen that nobody has marked. Of any number of deletions at the
   * same time, the one that marked last saw a key that was unmarked after its own mark, and so after all the others':
   * that key is nobody's to delete on the strength of theirs. Where all valid keys are marked, the deletion of the
   * lowest id waits and the others let go.
   */
  async function deleteMaster(id: string, now: number, signal: AbortSignal) {
    const token = randomUUID();
    const mark = { token, until: now + markMs };
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
        // Whoever took the mark for a dead deletion's has cleared it: then the key is to be marked anew.
        const { deletedCount } = await run(signal, () => keys.deleteOne({ _id: id, "mark.token": token }));
        return deletedCount === 1 ? "deleted" : "in_the_way";
      }
      const marked = await run(signal, () =>
        keys.find(others, { projection: { _id: 1, mark: 1 }, signal }).toArray(),
      );
      if (marked.length === 0) {
        await takeBack(id, token, signal);
        return "last_master_key";
      }
      const abandoned = marked.filter((other) => other.mark !== undefined && other.mark.until <= now);
      for (const { _id, mark: left } of abandoned) await takeBack(_id, left?.token ?? "", signal);
      if (abandoned.length === 0 && marked.some((other) => other.mark !== undefined && other._id < id)) {
        await takeBack(id, token, signal);
        return "in_the_way";
      }
      if (abandoned.length === 0) await pause(lookAgainMs, signal);
    }
  }

  return {
    async insert(key, signal) {
      return await insert(documentOf(key), signal);
    },
    async insertMasterIfNone(key, now, signal) {
      for (;;) {
        const oldest = await run(signal, () =>
          keys.findOne(apiKeyQueries.validMasters(now), { sort: { _id: 1 }, signal }),
        );
        if (oldest !== null) return apiKeyOf(oldest);
        await insert({ ...documentOf(key), made_at_start: true }, signal);
      }
    },
    async findByDigest(digest, signal) {
      const found = await run(signal, () => keys.findOne(apiKeyQueries.byDigest(digest), { signal }));
      return found && apiKeyOf(found);
    },
    async list(after, limit, signal) {
      const found = await run(signal, () =>
        keys
          .find(apiKeyQueries.behind(after ?? ""), { signal })
          .sort({ _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(apiKeyOf);
    },
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
        await pause(lookAgainMs * (2 + 2 * Math.random()), signal);
      }
    },
    async listIdsOfDevice(deviceId, signal) {
      const found = await run(signal, () =>
        keys
          .find(apiKeyQueries.ofDevice(deviceId), { projection: { _id: 1 }, signal })
          .sort({ _id: 1 })
          .toArray(),
      );
      return found.map(({ _id }) => _id);
    },
    async deleteAll(ids, signal) {
      if (ids.length === 0) return;
      await run(signal, () => keys.deleteMany({ _id: { $in: [...ids] } }));
    },
    /**
     * An epoch never comes back, so a key whose epoch is not that of the credentials read after it is an orphan for
     * good.
     */
    async deleteOrphans(signal) {
      let deleted = 0;
      for (let after: string | undefined = ""; after !== undefined; ) {
        const behind: string = after;
        const page = await run(signal, () =>
          keys
            .find(apiKeyQueries.behind(behind), { projection: { device_id: 1, epoch: 1 }, signal })
            .sort({ _id: 1 })
            .limit(orphanPage)
            .toArray(),
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
      // In one order, so that where a batch locks what it writes those of two replicas do not wait for each other.
      const inOrder = uses.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const updates = inOrder.map(({ id, at }) => ({
        updateOne: { filter: { _id: id }, update: { $max: { last_used: at } } },
      }));
      await run(signal, () => keys.bulkWrite(updates, { ordered: false }));
    },
  };

  /** False when there is one of that digest, or another made at the start, already. */
  async function insert(document: ApiKeyDocument, signal: AbortSignal): Promise<boolean> {
    try {
      await run(signal, () => keys.insertOne(document));
      return true;
    } catch (error) {
      if (isDuplicateKey(error, oneOfDigest) || isDuplicateKey(error, oneMadeAtStart)) return false;
      throw error;
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

function documentOf(key: StoredApiKey): ApiKeyDocument {
  const { id, digest, sealed, device, name, createdAt, lastUsed, expiresAt } = key;
  return {
    _id: id,
    digest,
    sealed,
    device_id: device?.id ?? null,
    epoch: device?.epoch ?? null,
    name,
    created_at: createdAt,
    last_used: lastUsed,
    expires_at: expiresAt,
  };
}

function apiKeyOf(document: ApiKeyDocument): StoredApiKey {
  const { _id, digest, sealed, device_id, epoch, name, created_at, last_used, expires_at } = document;
  return {
    id: _id,
    digest,
    sealed,
    device: device_id === null || epoch === null ? null : { id: device_id, epoch },
    name,
    createdAt: created_at,
    lastUsed: last_used,
    expiresAt: expires_at,
  };
}
