import { createMongoLeases } from "@devmesh/store/leases.mongodb";
import { openMongo } from "@devmesh/store/mongodb";
import type { MongoUrl } from "@devmesh/store/store-url";
import type { StoredWebhook, WebhookStore } from "./webhook-store.ts";

/** `document` is the JSON of the webhook. */
interface WebhookRow {
  readonly _id: string;
  readonly revision: number;
  readonly document: string;
}

/** Opens the store that all replicas share. @throws StoreUnavailable when no server answers in time */
export async function openMongoWebhookStore(url: MongoUrl, signal: AbortSignal): Promise<WebhookStore> {
  const store = await openMongo(url, [{ name: "webhooks", indexes: [] }], signal);
  const { run } = store;
  const webhooks = store.db.collection<WebhookRow>("webhooks");
  return {
    async insert(webhook, most, signal) {
      if ((await run(signal, () => webhooks.countDocuments({}, { signal }))) >= most) return false;
      await run(signal, () => webhooks.insertOne({ _id: webhook.id, ...membersOf(webhook) }));
      return true;
    },
    async find(id, signal) {
      const row = await run(signal, () => webhooks.findOne({ _id: id }, { signal }));
      return row && storedWebhook(row);
    },
    async list(signal) {
      const rows = await run(signal, () => webhooks.find({}, { signal }).sort({ _id: 1 }).toArray());
      return rows.map(storedWebhook);
    },
    async change(webhook, signal) {
      const { matchedCount } = await run(signal, () =>
        webhooks.replaceOne({ _id: webhook.id, revision: webhook.revision - 1 }, membersOf(webhook)),
      );
      return matchedCount === 1;
    },
    async remove(id, signal) {
      const { deletedCount } = await run(signal, () => webhooks.deleteOne({ _id: id }));
      return deletedCount === 1;
    },
    leases: createMongoLeases(store),
    ping: (signal) => store.ping(signal),
    close: () => store.close(),
  };
}

function membersOf(webhook: StoredWebhook) {
  return { revision: webhook.revision, document: JSON.stringify(webhook) };
}

/** Trusts the JSON: only this adapter writes the collection. */
function storedWebhook({ document }: WebhookRow): StoredWebhook {
  return JSON.parse(document);
}
