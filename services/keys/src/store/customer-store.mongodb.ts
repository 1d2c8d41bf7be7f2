import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import { bytesAsBuffers } from "./bytes.mongodb.ts";
import type { CustomerStore, StoredCustomer } from "./customer-store.ts";

type CustomerDocument = { readonly _id: string } & Omit<StoredCustomer, "id">;

const oneOfAddress = "one_of_address";

/** The collection of customers. */
export const customerCollection = {
  name: "customers",
  indexes: [
    { name: oneOfAddress, key: { email: 1 }, unique: true },
    { name: "one_of_token", key: { token_digest: 1 }, unique: true },
    { name: "unconfirmed", key: { confirmed_at: 1, invited_at: 1 } },
  ],
} as const satisfies CollectionDeclaration;

/** The adapter's queries; exported so that a test can check their plans. */
export const customerQueries = {
  byTokenDigest: (digest: Uint8Array) => ({ token_digest: digest }),
  byAddress: (email: string) => ({ email }),
  after: (id: string) => ({ _id: { $gt: id } }),
  unconfirmed: (invitedUntil: number) => ({ confirmed_at: null, invited_at: { $lte: invitedUntil } }),
} as const;

/** Customers in MongoDB. */
export function createMongoCustomerStore({ db, run }: MongoStore): CustomerStore {
  const customers = db.collection<CustomerDocument>(customerCollection.name, bytesAsBuffers);

  return {
    insert({ id, ...customer }, signal) {
      const inserted = run(signal, () => customers.insertOne({ _id: id, ...customer }));
      return unlessDuplicate(inserted, oneOfAddress);
    },
    async find(id, signal) {
      return customerOf(await run(signal, () => customers.findOne({ _id: id }, { signal })));
    },
    async findByTokenDigest(digest, signal) {
      const query = customerQueries.byTokenDigest(digest);
      return customerOf(await run(signal, () => customers.findOne(query, { signal })));
    },
    async recordInvitation(email, at, signal) {
      const update = { $set: { invited_at: at } };
      const options = { returnDocument: "after" } as const;
      const query = customerQueries.byAddress(email);
      return customerOf(await run(signal, () => customers.findOneAndUpdate(query, update, options)));
    },
    async isConfirmed(email, signal) {
      const options = { projection: { confirmed_at: 1 }, signal };
      const found = await run(signal, () => customers.findOne(customerQueries.byAddress(email), options));
      return found !== null && found.confirmed_at !== null;
    },
    async confirm(id, at, signal) {
      const { matchedCount } = await run(signal, () =>
        customers.updateOne({ _id: id }, [{ $set: { confirmed_at: { $ifNull: ["$confirmed_at", at] } } }]),
      );
      return matchedCount === 1;
    },
    async replaceMeta(id, meta, at, signal) {
      const update = { $set: { meta, updated_at: at } };
      const options = { returnDocument: "after" } as const;
      return customerOf(await run(signal, () => customers.findOneAndUpdate({ _id: id }, update, options)));
    },
    async list(after, limit, signal) {
      const query = customerQueries.after(after ?? "");
      const found = await run(signal, () =>
        customers.find(query, { signal }).sort({ _id: 1 }).limit(limit).toArray(),
      );
      return found.flatMap((document) => customerOf(document) ?? []);
    },
    async count(until, signal) {
      const [all, over] = await Promise.all([
        run(signal, () => customers.countDocuments({}, { signal })),
        run(signal, () => customers.countDocuments(customerQueries.unconfirmed(until), { signal })),
      ]);
      return all - over;
    },
    async delete(id, signal) {
      const { deletedCount } = await run(signal, () => customers.deleteOne({ _id: id }));
      return deletedCount === 1;
    },
    deleteUnconfirmed: (invitedUntil, signal) => deleteOne(customerQueries.unconfirmed(invitedUntil), signal),
    deleteUnconfirmedOf: (email, invitedUntil, signal) =>
      deleteOne({ email, ...customerQueries.unconfirmed(invitedUntil) }, signal),
  };

  async function deleteOne(
    query: ReturnType<typeof customerQueries.unconfirmed> & { readonly email?: string },
    signal: AbortSignal,
  ): Promise<string | null> {
    const deleted = await run(signal, () => customers.findOneAndDelete(query, { projection: { _id: 1 } }));
    return deleted?._id ?? null;
  }
}

function customerOf(document: CustomerDocument | null): StoredCustomer | null {
  if (document === null) return null;
  const { _id: id, ...customer } = document;
  return { id, ...customer };
}
