import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll } from "@jest/globals";
import { keyMatrix } from "./plain-mesh/key-matrix.suite.ts";
import { load } from "./plain-mesh/load.suite.ts";
import { notificationStream } from "./plain-mesh/notify.suite.ts";
import { storedData } from "./plain-mesh/stored-data.suite.ts";

/* Suites that share a mesh; the first need one without records and customers. */
let mesh: TestMesh;
beforeAll(async () => {
  mesh = await startMesh({ env: { RATE_ANONYMOUS: "1000", MAIL_PER_NETWORK_HOUR: "100" } });
}, 120_000);
afterAll(async () => await mesh?.stop(), 60_000);

for (const suite of [storedData, notificationStream, load, keyMatrix]) suite(() => mesh);
