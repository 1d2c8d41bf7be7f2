import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { startTraceCollector, type TraceCollector } from "@devmesh/testkit/trace-collector";
import { afterAll, beforeAll } from "@jest/globals";
import { readme } from "./traced-mesh/readme.suite.ts";
import { secrets } from "./traced-mesh/secrets.suite.ts";
import { traces } from "./traced-mesh/traces.suite.ts";

/* A mesh that logs and exports all it can. */
let mesh: TestMesh;
let collector: TraceCollector;
beforeAll(async () => {
  collector = await startTraceCollector();
  mesh = await startMesh({
    env: { LOG_LEVEL: "trace", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, TRUST_PROXY: "loopback" },
  });
}, 120_000);
afterAll(async () => {
  await mesh?.stop();
  await collector?.[Symbol.asyncDispose]();
}, 60_000);

secrets(() => mesh);
traces(
  () => mesh,
  () => collector,
);
readme(() => mesh);
