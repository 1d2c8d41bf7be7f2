import { createMongoLeases } from "@devmesh/store/leases.mongodb";
import { openMongo } from "@devmesh/store/mongodb";
import type { MongoUrl } from "@devmesh/store/store-url";
import { createMongoExecutionStore, executionCollection } from "./execution-store.mongodb.ts";
import { createMongoFirmwareStore, firmwareCollection } from "./firmware-store.mongodb.ts";
import { jobCollection } from "./job-store.mongodb.ts";
import type { JobsStore } from "./jobs-store.ts";

/** All that the service stores in MongoDB. */
const collections = [executionCollection, firmwareCollection, jobCollection];

/** Opens the store that all replicas share. @throws StoreUnavailable when no server answers in time */
export async function openMongoJobsStore(url: MongoUrl, signal: AbortSignal): Promise<JobsStore> {
  const store = await openMongo(url, collections, signal);
  return {
    executions: createMongoExecutionStore(store),
    firmware: createMongoFirmwareStore(store),
    leases: createMongoLeases(store),
    ping: (signal) => store.ping(signal),
    close: () => store.close(),
  };
}
