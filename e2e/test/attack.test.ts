import { freePort } from "@devmesh/testkit/free-port";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll } from "@jest/globals";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { floods } from "./attack/floods.suite.ts";
import { strangers } from "./attack/strangers.suite.ts";
import { allViews } from "./dashboard/views.suite.ts";

/*
 * A mesh that is attacked by strangers and by devices. A device may send a quarter of what it may by default, so that a
 * flood exceeds it on a busy machine, too. Before, the views of the dashboard, which need an empty mesh: with the other
 * suites in a browser they would be the longest file.
 */
let mesh: TestMesh;
let websocketPort: number;
const onCluster = process.env.DEVMESH_E2E_BROKER === "cluster";
beforeAll(async () => {
  websocketPort = await freePort();
  const listener = onCluster ? {} : { MQTT_WS_PORT: String(websocketPort) };
  mesh = await startMesh({
    env: { ...listener, DEVICE_RATE_MESSAGES: "500", DEVICE_RATE_BYTES: "250000", RATE_MASTER: "1000000" },
  });
}, 120_000);
afterAll(async () => await mesh?.stop(), 60_000);

// The broker does not matter to the first; the second measure a nats-server that the mesh starts.
if (!onCluster) {
  describeInBrowser("the dashboard", (browser) => allViews(browser, () => mesh));
  strangers(
    () => mesh,
    () => websocketPort,
  );
}
floods(() => mesh);
