import { maxKnownClientIds } from "@devmesh/contracts/keys";
import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import { bytesAsBuffers } from "./bytes.mongodb.ts";
import type { CredentialStore, StoredCredentials, StoredSecret } from "./credential-store.ts";

export interface CredentialDocument {
  readonly _id: string;
  /** Absent once the credentials are revoked, like both secrets. */
  readonly epoch?: string;
  readonly token?: StoredSecret;
  readonly public_key?: StoredSecret;
  /** The most useful first. */
  readonly clients: readonly ClientDocument[];
}

interface ClientDocument {
  readonly id: string;
  readonly seen_at: number;
  readonly generated: boolean;
}

/** Device credentials, with client ids in the same document so that a revocation excludes a concurrent login. */
export const credentialCollection = {
  name: "device_credentials",
  indexes: [{ name: "one_of_public_key", key: { "public_key.digest": 1 }, unique: true, sparse: true }],
} as const satisfies CollectionDeclaration;

/** The adapter's queries; exported so that a test can check their plans. */
export const credentialQueries = {
  withAccess: (deviceId: string) => ({ _id: deviceId, epoch: { $exists: true } }),
  byPublicKey: (digest: Uint8Array) => ({ "public_key.digest": digest }),
  ofToken: (deviceId: string, epoch: string, tokenDigest: Uint8Array) => ({
    _id: deviceId,
    epoch,
    "token.digest": tokenDigest,
  }),
} as const;

/** Device credentials in MongoDB. */
export function createMongoCredentialStore({ db, run }: MongoStore): CredentialStore {
  const devices = db.collection<CredentialDocument>(credentialCollection.name, bytesAsBuffers);

  async function find(deviceId: string, signal: AbortSignal): Promise<StoredCredentials | null> {
    const found = await run(signal, () =>
      devices.findOne(credentialQueries.withAccess(deviceId), { projection: { clients: 0 }, signal }),
    );
    return found && credentialsOf(found);
  }

  return {
    async issue({ deviceId, epoch, token, publicKey }, signal) {
      for (;;) {
        const inserted = run(signal, () =>
          devices.insertOne({ _id: deviceId, epoch, token, public_key: publicKey, clients: [] }),
        );
        if (await unlessDuplicate(inserted, "_id_")) return { deviceId, epoch, token, publicKey };
        const held = await run(signal, () =>
          devices.findOne({ _id: deviceId }, { projection: { clients: 0 }, signal }),
        );
        // Null: forgotten in between, so the id is free again.
        if (held !== null) return credentialsOf(held) ?? "revoked";
      }
    },
    find,
    async findByPublicKey(digest, signal) {
      const found = await run(signal, () =>
        devices.findOne(credentialQueries.byPublicKey(digest), { projection: { _id: 1 }, signal }),
      );
      return found && { deviceId: found._id };
    },
    async isKnown(deviceId, signal) {
      const found = await run(signal, () =>
        devices.findOne({ _id: deviceId }, { projection: { _id: 1 }, signal }),
      );
      return found !== null;
    },
    async replace(deviceId, epoch, secrets, signal) {
      const changed = "token" in secrets ? { token: secrets.token } : { public_key: secrets.publicKey };
      const { matchedCount } = await run(signal, () =>
        devices.updateOne({ _id: deviceId, epoch }, { $set: changed }),
      );
      return matchedCount === 1;
    },
    async revoke(deviceId, signal) {
      const revoked = await run(signal, () =>
        devices.findOneAndUpdate(
          { _id: deviceId },
          { $unset: { epoch: 1, token: 1, public_key: 1 } },
          { projection: { clients: 1 } },
        ),
      );
      return (revoked?.clients ?? []).map(({ id }) => id).sort();
    },
    async forget(deviceId, signal) {
      await run(signal, () => devices.deleteOne({ _id: deviceId, epoch: { $exists: false } }));
    },
    async findLogin(deviceId, clientId, signal) {
      const projection = { epoch: 1, "token.digest": 1, clients: { $elemMatch: { id: clientId } } };
      const found = await run(signal, () =>
        devices.findOne(credentialQueries.withAccess(deviceId), { projection, signal }),
      );
      if (found?.epoch === undefined || found.token === undefined) return null;
      // The projection omits the member when nothing matches.
      const clients: CredentialDocument["clients"] | undefined = found.clients;
      return {
        epoch: found.epoch,
        tokenDigest: found.token.digest,
        clientSeenAt: clients?.[0]?.seen_at ?? null,
      };
    },
    async recordClient({ deviceId, epoch, tokenDigest, clientId, at, generated }, signal) {
      const seen: ClientDocument = { id: clientId, seen_at: at, generated };
      // `$literal`: a client id must not be evaluated as an expression.
      const others = { $filter: { input: "$clients", cond: { $ne: ["$$this.id", { $literal: clientId }] } } };
      const all = { $concatArrays: [[{ $literal: seen }], others] };
      const sorted = { $sortArray: { input: all, sortBy: { generated: 1, seen_at: -1 } } };
      const { matchedCount } = await run(signal, () =>
        devices.updateOne(credentialQueries.ofToken(deviceId, epoch, tokenDigest), [
          { $set: { clients: { $slice: [sorted, maxKnownClientIds] } } },
        ]),
      );
      return matchedCount === 1;
    },
  };
}

/** Null for credentials that are revoked. */
function credentialsOf({ _id, epoch, token, public_key }: CredentialDocument): StoredCredentials | null {
  if (epoch === undefined || token === undefined || public_key === undefined) return null;
  return { deviceId: _id, epoch, token, publicKey: public_key };
}
