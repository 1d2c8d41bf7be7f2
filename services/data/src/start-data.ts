import { mesh } from "@devmesh/contracts/mesh";
import { publishDataCanary, watchBrokerStorage } from "@devmesh/device-broker/broker-canary";
import { deviceBacklog } from "@devmesh/device-broker/device-backlog";
import { subscribe } from "@devmesh/service-kit/events";
import type { StartedService, StartOptions } from "@devmesh/service-kit/run-service";
import { createData } from "./data.ts";
import { createDataMetrics } from "./data-metrics.ts";
import type { DataEnv } from "./env.ts";
import { createIngestion } from "./ingestion/ingest.ts";
import { startIntake } from "./ingestion/intake.ts";
import { createRecordFeed } from "./query/record-feed.ts";
import { createPurges } from "./retention/purge.ts";
import { createRetention } from "./retention/retention.ts";
import { openDataStore } from "./store/open-data-store.ts";

type Declaration = typeof mesh.data;

/**
 * Opens the store, takes up what a crash left half-purged, and begins to store what devices publish. Ready once the
 * broker keeps for this service what comes at QoS 1 and 2.
 */
export async function startData(
  parts: StartOptions<Declaration, DataEnv>,
): Promise<StartedService<Declaration["serves"]>> {
  const { env, bus, devicesBus, publisher, log, clock, metrics: registered, ready, signal } = parts;
  const { DATA_RETENTION_DAYS: days, DATA_MAX_BYTES: maxBytes } = env;
  const store = await openDataStore(env.STORE_URL, { maxBytes, signal });
  const backlog = () => deviceBacklog(devicesBus, "data");
  const metrics = createDataMetrics(registered.registry, store, backlog);
  const feed = createRecordFeed(publisher, clock);
  const [wishes] = mesh.data.subscribes;
  const listening = subscribe(bus, wishes, { records_wanted: () => feed.want() }, { mode: "each" });
  const ingestion = createIngestion({ store, metrics, log, clock, feed });
  const purges = createPurges({ store, metrics, log, signal });
  const retention = createRetention({ store, purges, metrics, clock, log, days, maxBytes });
  const intake = startIntake({
    bus: devicesBus,
    ingestion,
    store,
    clock,
    batch: env.INGEST_BATCH,
    waitMs: env.INGEST_WAIT_MS,
    signal,
  });
  const canary = watchBrokerStorage({
    bus: devicesBus,
    publish: () => publishDataCanary(devicesBus),
    connected: () => devicesBus.connected,
    signal,
  });
  ready("broker storage", canary.isStoring);
  ready("broker stream full", canary.hasRoom);
  const sweeping = retention.run(signal);
  return {
    implementation: createData({ store, purges, clock, backlog }),
    async ready() {
      await store.ping();
      await ingestion.checkStore();
      // Rejects until the broker keeps for this service what devices publish.
      await backlog();
    },
    async stop() {
      await Promise.all([intake.stop(), sweeping, canary.ended, listening.stop()]);
    },
    close: () => store.close(),
  };
}
