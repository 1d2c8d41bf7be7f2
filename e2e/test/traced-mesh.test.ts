import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { startTraceCollector, type TraceCollector } from "@devmesh/testkit/trace-collector";
import { afterAll, beforeAll } from "@jest/globals";
import { keyMatrix } from "./traced-mesh/key-matrix.suite.ts";
import { load } from "./traced-mesh/load.suite.ts";
import { notificationStream } from "./traced-mesh/notify.suite.ts";
import { numbers } from "./traced-mesh/numbers.suite.ts";
import { readme, webhookGuides } from "./traced-mesh/readme.suite.ts";
import { secrets } from "./traced-mesh/secrets.suite.ts";
import { storedData } from "./traced-mesh/stored-data.suite.ts";
import { traces } from "./traced-mesh/traces.suite.ts";

/*
 * A mesh that logs and exports all it can. The first suites need one without records and customers; of the last ones
 * one looks for secrets in what all have left.
 */
let mesh: TestMesh;
let collector: TraceCollector;
beforeAll(async () => {
  collector = await startTraceCollector();
  mesh = await startMesh({
    env: {
      LOG_LEVEL: "trace",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      TRUST_PROXY: "loopback",
      WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
      RATE_ANONYMOUS: "1000",
      MAIL_PER_NETWORK_HOUR: "100",
    },
  });
}, 120_000);
afterAll(async () => {
  await mesh?.stop();
  await collector?.[Symbol.asyncDispose]();
});

for (const suite of [storedData, notificationStream, load]) suite(() => mesh);
// Neither the store nor the broker decides what a key may do, or what the documents say.
if (process.env.DEVMESH_E2E_BROKER !== "cluster") {
  keyMatrix(() => mesh);
  readme(() => mesh);
  webhookGuides(() => mesh);
  numbers(() => mesh);
}
traces(
  () => mesh,
  () => collector,
);
secrets(() => mesh);
