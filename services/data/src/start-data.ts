import { mesh } from "@devmesh/contracts/mesh";
import { publishDataCanary, watchBrokerStorage } from "@devmesh/device-broker/broker-canary";
import { connectDevicesBus } from "@devmesh/device-broker/devices-account";
import { createDiagnosisReporter } from "@devmesh/device-broker/diagnosis-reporter";
import { deviceBacklog } from "@devmesh/device-broker/mqtt-stream";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { sumOf } from "@devmesh/service-kit/metrics";
import type { ServiceParts, StartOptions } from "@devmesh/service-kit/process/run-service";
import { traceStore } from "@devmesh/service-kit/tracing/trace-store";
import { openStore } from "@devmesh/store/store-url";
import { createData } from "./data.ts";
import { createDataMetrics } from "./data-metrics.ts";
import type { DataEnv } from "./env.ts";
import { createBatchWriter } from "./ingestion/batch-writer.ts";
import { startIngestion } from "./ingestion/ingestion.ts";
import { createRecordFeed } from "./ingestion/record-feed.ts";
import { createPurges } from "./retention/purge.ts";
import { createRetention } from "./retention/retention.ts";
import { openSqliteDataStore, segmentBytesFor } from "./store/data-store.sqlite.ts";
import type { DataStore } from "./store/data-store.ts";

type DataDeclaration = typeof mesh.data;

/** Options of `startData`. A test reads and fills the store beside the service. */
export interface StartDataOptions
  extends Omit<StartOptions<DataDeclaration, DataEnv>, "clients" | "onLauncherMessage"> {
  /** Opened as `STORE_URL` says unless given. */
  readonly store?: DataStore;
}

/** The started service; ready once the broker has its consumer. */
export type StartedData = Required<Omit<ServiceParts<DataDeclaration["serves"]>, "elsewhere">>;

/** Opens the store, resumes purges and starts ingestion. */
export async function startData(options: StartDataOptions): Promise<StartedData> {
  const { env, bus, publisher, log, clock, metrics: registered, ready, signal } = options;
  const { DATA_RETENTION_DAYS: days, DATA_MAX_BYTES: maxBytes } = env;
  const devicesBus = await connectDevicesBus(options);
  const opened = options.store ?? (await openDataStore(env.STORE_URL, maxBytes, signal));
  const store = traceStore(bus.tracer, opened, {
    system: env.STORE_URL.kind,
    collection: "records",
  });
  const backlog = () => deviceBacklog(devicesBus, "data");
  const metrics = createDataMetrics(registered.registry, store, backlog);
  const feed = createRecordFeed(publisher, clock);
  const [subscription] = mesh.data.subscribes;
  const listening = subscribe(bus, subscription, { records_wanted: () => feed.want() }, { mode: "each" });
  const writer = createBatchWriter({
    store,
    metrics,
    report: createDiagnosisReporter({ clock, publish: publisher.diagnostics }),
    log,
    clock,
    feed,
  });
  const purges = createPurges({ store, metrics, log, signal });
  const retention = createRetention({
    ...{ store, purges, metrics, clock, log, days, maxBytes },
    seriesDays: env.SERIES_RETENTION_DAYS,
    maxSeriesBytes: env.SERIES_MAX_BYTES,
  });
  const ingestion = startIngestion({
    bus: devicesBus,
    writer,
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
    implementation: createData({ store, purges, clock, backlog, keptMs: days * 86_400_000 }),
    async ready() {
      await store.ping();
      await writer.checkStore();
      // Rejects while the consumer is missing.
      await backlog();
    },
    figures: {
      records_stored: () => sumOf(metrics.stored),
      stored_bytes: async () => (await store.size()).bytes,
    },
    async stop() {
      await Promise.all([ingestion.stop(), sweeping, canary.ended, listening.stop()]);
    },
    close: () => store.close(),
  };
}

async function openDataStore(
  url: DataEnv["STORE_URL"],
  maxBytes: number,
  signal: AbortSignal,
): Promise<DataStore> {
  const sqlite = (path: string) => openSqliteDataStore(path, { segmentBytes: segmentBytesFor(maxBytes) });
  const mongodb = async () => (await import("./store/data-store.mongodb.ts")).openMongoDataStore;
  return openStore(url, { sqlite, mongodb }, signal);
}
