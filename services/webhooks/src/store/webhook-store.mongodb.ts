import { createMongoLeases } from "@devmesh/store/leases.mongodb";
import { createMongoLimit } from "@devmesh/store/limit.mongodb";
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
  const limit = createMongoLimit(store, {
    name: "webhooks",
    countStored: (given) => run(given, () => webhooks.countDocuments({}, { signal: given })),
  });
  return {
    insert(webhook, most, given) {
      const row = { _id: webhook.id, ...membersOf(webhook) };
      const insert = async () => (await run(given, () => webhooks.insertOne(row))).acknowledged;
      return limit.insert(most, insert, given);
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
      const remove = async () => (await run(signal, () => webhooks.deleteOne({ _id: id }))).deletedCount;
      return (await limit.remove(remove, signal)) === 1;
    },
    correctCounts: (given) => limit.correct(given),
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
