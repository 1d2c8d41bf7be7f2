import type { CollectionDeclaration, MongoStore } from "@devmesh/store/mongodb";
import { bytesAsBuffers } from "./bytes.mongodb.ts";
import type { SessionStore, StoredSession } from "./session-store.ts";

type SessionDocument = { readonly _id: string } & Omit<StoredSession, "id">;

/** The collection of sessions. */
export const sessionCollection = {
  name: "sessions",
  indexes: [{ name: "one_of_digest", key: { digest: 1 }, unique: true }],
} as const satisfies CollectionDeclaration;

/** The adapter's query; exported so that a test can check its plan. */
export const sessionByDigest = (digest: Uint8Array) => ({ digest });

/** Sessions in MongoDB. */
export function createMongoSessionStore({ db, run }: MongoStore): SessionStore {
  const sessions = db.collection<SessionDocument>(sessionCollection.name, bytesAsBuffers);

  return {
    async insert({ id, ...session }, signal) {
      await run(signal, () => sessions.insertOne({ _id: id, ...session }));
    },
    async findByDigest(digest, signal) {
      const found = await run(signal, () => sessions.findOne(sessionByDigest(digest), { signal }));
      return found && sessionOf(found);
    },
    async list(signal) {
      const found = await run(signal, () => sessions.find({}, { signal }).sort({ _id: 1 }).toArray());
      return found.map(sessionOf);
    },
    async deleteAll(ids, signal) {
      if (ids.length === 0) return 0;
      const { deletedCount } = await run(signal, () => sessions.deleteMany({ _id: { $in: [...ids] } }));
      return deletedCount;
    },
    async recordUses(uses, signal) {
      if (uses.length === 0) return;
      // In one order, so that two replicas do not deadlock where a batch locks what it writes.
      const inOrder = uses.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const updates = inOrder.map(({ id, at }) => ({
        updateOne: { filter: { _id: id }, update: { $max: { last_used: at } } },
      }));
      await run(signal, () => sessions.bulkWrite(updates, { ordered: false }));
    },
  };
}

function sessionOf({ _id: id, ...session }: SessionDocument): StoredSession {
  return { id, ...session };
}
