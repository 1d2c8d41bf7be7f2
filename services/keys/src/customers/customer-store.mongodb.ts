import { type CollectionDeclaration, isDuplicateKey, type MongoStore } from "@devmesh/store/mongodb";
import { bytesAsBuffers } from "../store/bytes.mongodb.ts";
import type { CustomerStore, StoredCustomer } from "./customer-store.ts";

/** A customer as it stands in the database; its `_id` is the customer's. */
interface CustomerDocument {
  readonly _id: string;
  readonly email: string;
  readonly token_digest: Uint8Array;
  readonly token_sealed: Uint8Array;
  readonly meta: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly confirmed_at: number | null;
  readonly invited_at: number;
}

const oneOfAddress = "one_of_address";

/** Where customers stand. */
export const customerCollection = {
  name: "customers",
  indexes: [
    { name: oneOfAddress, key: { email: 1 }, unique: true },
    { name: "one_of_token", key: { token_digest: 1 }, unique: true },
    { name: "unconfirmed", key: { confirmed_at: 1, invited_at: 1 } },
  ],
} as const satisfies CollectionDeclaration;

/** What the adapter finds customers by, by purpose; exported so that a test can ask the database for the plans. */
export const customerQueries = {
  byTokenDigest: (digest: Uint8Array) => ({ token_digest: digest }),
  byAddress: (email: string) => ({ email }),
  behind: (id: string) => ({ _id: { $gt: id } }),
  unconfirmed: (invitedUntil: number) => ({ confirmed_at: null, invited_at: { $lte: invitedUntil } }),
  unconfirmedOf: (email: string, invitedUntil: number) => ({
    email,
    confirmed_at: null,
    invited_at: { $lte: invitedUntil },
  }),
} as const;

/** Customers in MongoDB. */
export function createMongoCustomerStore({ db, run }: MongoStore): CustomerStore {
  const customers = db.collection<CustomerDocument>(customerCollection.name, bytesAsBuffers);

  return {
    async insert(customer, signal) {
      try {
        await run(signal, () => customers.insertOne(documentOf(customer)));
        return true;
      } catch (error) {
        if (isDuplicateKey(error, oneOfAddress)) return false;
        throw error;
      }
    },
    async find(id, signal) {
      const found = await run(signal, () => customers.findOne({ _id: id }, { signal }));
      return found && customerOf(found);
    },
    async findByTokenDigest(digest, signal) {
      const found = await run(signal, () =>
        customers.findOne(customerQueries.byTokenDigest(digest), { signal }),
      );
      return found && customerOf(found);
    },
    async recordInvitation(email, at, signal) {
      const invited = await run(signal, () =>
        customers.findOneAndUpdate(
          customerQueries.byAddress(email),
          { $set: { invited_at: at } },
          { returnDocument: "after" },
        ),
      );
      return invited && customerOf(invited);
    },
    async isConfirmed(email, signal) {
      const found = await run(signal, () =>
        customers.findOne(customerQueries.byAddress(email), { projection: { confirmed_at: 1 }, signal }),
      );
      return found !== null && found.confirmed_at !== null;
    },
    async confirm(id, at, signal) {
      const { matchedCount } = await run(signal, () =>
        customers.updateOne({ _id: id }, [{ $set: { confirmed_at: { $ifNull: ["$confirmed_at", at] } } }]),
      );
      return matchedCount === 1;
    },
    async replaceMeta(id, meta, at, signal) {
      const changed = await run(signal, () =>
        customers.findOneAndUpdate(
          { _id: id },
          { $set: { meta, updated_at: at } },
          { returnDocument: "after" },
        ),
      );
      return changed && customerOf(changed);
    },
    async list(after, limit, signal) {
      const found = await run(signal, () =>
        customers
          .find(customerQueries.behind(after ?? ""), { signal })
          .sort({ _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(customerOf);
    },
    async delete(id, signal) {
      const { deletedCount } = await run(signal, () => customers.deleteOne({ _id: id }));
      return deletedCount === 1;
    },
    async deleteUnconfirmed(invitedUntil, signal) {
      return deleteOne(customerQueries.unconfirmed(invitedUntil), signal);
    },
    async deleteUnconfirmedOf(email, invitedUntil, signal) {
      return deleteOne(customerQueries.unconfirmedOf(email, invitedUntil), signal);
    },
  };

  async function deleteOne(
    which: ReturnType<(typeof customerQueries)["unconfirmed" | "unconfirmedOf"]>,
    signal: AbortSignal,
  ): Promise<string | null> {
    const deleted = await run(signal, () => customers.findOneAndDelete(which, { projection: { _id: 1 } }));
    return deleted?._id ?? null;
  }
}

function documentOf(customer: StoredCustomer): CustomerDocument {
  return {
    _id: customer.id,
    email: customer.email,
    token_digest: customer.tokenDigest,
    token_sealed: customer.sealedToken,
    meta: customer.meta,
    created_at: customer.createdAt,
    updated_at: customer.updatedAt,
    confirmed_at: customer.confirmedAt,
    invited_at: customer.invitedAt,
  };
}

function customerOf(document: CustomerDocument): StoredCustomer {
  return {
    id: document._id,
    email: document.email,
    tokenDigest: document.token_digest,
    sealedToken: document.token_sealed,
    meta: document.meta,
    createdAt: document.created_at,
    updatedAt: document.updated_at,
    confirmedAt: document.confirmed_at,
    invitedAt: document.invited_at,
  };
}
