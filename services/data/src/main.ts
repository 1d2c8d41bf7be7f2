import { mesh } from "@devmesh/contracts/mesh";
import { deviceBacklog } from "@devmesh/service-kit/device-backlog";
import { subscribe } from "@devmesh/service-kit/events";
import { runService } from "@devmesh/service-kit/run-service";
import { createData } from "./data.ts";
import { createDataMetrics } from "./data-metrics.ts";
import { DataEnv } from "./env.ts";
import { createIngestion } from "./ingest.ts";
import { startIntake } from "./intake.ts";
import { openDataStore } from "./open-data-store.ts";
import { createPurges } from "./purge.ts";
import { createRecordFeed } from "./record-feed.ts";
import { createRetention } from "./retention.ts";

await runService({
  name: "data",
  declaration: mesh.data,
  env: DataEnv,
  async start({ env, bus: meshBus, publisher, devicesBus: bus, log, clock, metrics: { registry }, signal }) {
    const {
      DATA_RETENTION_DAYS: days,
      DATA_MAX_BYTES: maxBytes,
      INGEST_BATCH: batch,
      INGEST_WAIT_MS: waitMs,
    } = env;
    const store = await openDataStore(env.STORE_URL, { maxBytes, signal });
    const backlog = () => deviceBacklog(bus, "data");
    const metrics = createDataMetrics(registry, store, backlog);
    const feed = createRecordFeed(publisher, clock);
    const [wishes] = mesh.data.subscribes;
    const listening = subscribe(meshBus, wishes, { records_wanted: () => feed.want() }, { mode: "each" });
    const ingestion = createIngestion({ store, metrics, log, clock, feed });
    const purges = createPurges({ store, metrics, log, signal });
    const retention = createRetention({ store, purges, metrics, clock, log, days, maxBytes });
    const intake = startIntake({ bus, ingestion, clock, batch, waitMs, signal });
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
        await Promise.all([intake.stop(), sweeping, listening.stop()]);
      },
      close: () => store.close(),
    };
  },
});
