import { createMongoLeases } from "@devmesh/store/leases.mongodb";
import { createMongoMailSlotStore, mailWindowCollection } from "@devmesh/store/mail-slots.mongodb";
import { openMongo } from "@devmesh/store/mongodb";
import type { MongoUrl } from "@devmesh/store/store-url";
import { alertCollection, createMongoAlertStore } from "./alert-store.mongodb.ts";
import type { AlertsStore } from "./alerts-store.ts";
import { createMongoRuleStore } from "./rule-store.mongodb.ts";

/** Opens the store that all replicas share. @throws StoreUnavailable when no server answers in time */
export async function openMongoAlertsStore(url: MongoUrl, signal: AbortSignal): Promise<AlertsStore> {
  const store = await openMongo(url, [alertCollection, mailWindowCollection], signal);
  return {
    rules: createMongoRuleStore(store),
    alerts: createMongoAlertStore(store),
    testSlots: createMongoMailSlotStore(store),
    leases: createMongoLeases(store),
    ping: (given) => store.ping(given),
    close: () => store.close(),
  };
}
