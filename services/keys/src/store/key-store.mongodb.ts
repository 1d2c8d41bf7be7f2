import { createMongoMailSlotStore, mailWindowCollection } from "@devmesh/store/mail-slots.mongodb";
import { openMongo, unlessDuplicate } from "@devmesh/store/mongodb";
import type { MongoUrl } from "@devmesh/store/store-url";
import { apiKeyCollection, createMongoApiKeyStore } from "./api-key-store.mongodb.ts";
import { bytesAsBuffers } from "./bytes.mongodb.ts";
import { createMongoCredentialStore, credentialCollection } from "./credential-store.mongodb.ts";
import { createMongoCustomerStore, customerCollection } from "./customer-store.mongodb.ts";
import type { KeyStore } from "./key-store.ts";
import { createMongoSessionStore, sessionCollection } from "./session-store.mongodb.ts";

interface SettingDocument {
  readonly _id: string;
  readonly value: Uint8Array;
}

/** All that `keys` stores in MongoDB. */
export const keyCollections = [
  apiKeyCollection,
  credentialCollection,
  sessionCollection,
  customerCollection,
  mailWindowCollection,
];

/** Opens the store that all replicas share. @throws StoreUnavailable when no server answers in time */
export async function openMongoKeyStore(url: MongoUrl, signal: AbortSignal): Promise<KeyStore> {
  const store = await openMongo(url, keyCollections, signal);
  const settings = store.db.collection<SettingDocument>("settings", bytesAsBuffers);
  return {
    apiKeys: createMongoApiKeyStore(store),
    credentials: createMongoCredentialStore(store),
    sessions: createMongoSessionStore(store),
    customers: createMongoCustomerStore(store),
    mailSlots: createMongoMailSlotStore(store),
    async putSettingIfAbsent(name, value, signal) {
      for (;;) {
        const inserted = store.run(signal, () => settings.insertOne({ _id: name, value }));
        if (await unlessDuplicate(inserted)) return value;
        const stored = await store.run(signal, () => settings.findOne({ _id: name }, { signal }));
        // It is never removed, but a primary that was just elected may not return it yet.
        if (stored !== null) return stored.value;
      }
    },
    ping: (signal) => store.ping(signal),
    close: () => store.close(),
  };
}
