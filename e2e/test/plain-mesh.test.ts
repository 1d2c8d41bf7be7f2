import { freePort } from "@devmesh/testkit/free-port";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll } from "@jest/globals";
import { keyMatrix } from "./plain-mesh/key-matrix.suite.ts";
import { load } from "./plain-mesh/load.suite.ts";
import { notificationStream } from "./plain-mesh/notify.suite.ts";
import { storedData } from "./plain-mesh/stored-data.suite.ts";
import { strangers } from "./plain-mesh/strangers.suite.ts";

/* Suites that share a mesh; the first need one without records and customers. */
const websocketPort = await freePort();
let mesh: TestMesh;
beforeAll(async () => {
  const generous = { RATE_ANONYMOUS: "1000", MAIL_PER_NETWORK_HOUR: "100" };
  mesh = await startMesh({ env: { ...generous, MQTT_WS_PORT: String(websocketPort) } });
}, 120_000);
afterAll(async () => await mesh?.stop(), 60_000);

for (const suite of [storedData, notificationStream, load, keyMatrix]) suite(() => mesh);
strangers(() => mesh, websocketPort);
