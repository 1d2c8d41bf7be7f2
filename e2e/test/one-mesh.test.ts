import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll } from "@jest/globals";
import { clients } from "./one-mesh/clients.suite.ts";
import { customers } from "./one-mesh/customers.suite.ts";
import { deletion } from "./one-mesh/deletion.suite.ts";
import { diagnostics } from "./one-mesh/diagnostics.suite.ts";
import { discovery } from "./one-mesh/discovery.suite.ts";
import { firmware } from "./one-mesh/firmware.suite.ts";
import { jobs } from "./one-mesh/jobs.suite.ts";
import { presence } from "./one-mesh/presence.suite.ts";
import { rpc } from "./one-mesh/rpc.suite.ts";
import { shadow } from "./one-mesh/shadow.suite.ts";
import { specTables } from "./one-mesh/spec-tables.suite.ts";
import { topicIsolation } from "./one-mesh/topic-isolation.suite.ts";
import { updates } from "./one-mesh/updates.suite.ts";
import { waitingCalls } from "./one-mesh/waiting-calls.suite.ts";
import { webhookLoops } from "./one-mesh/webhook-loops.suite.ts";

/*
 * Suites that make their devices share a mesh, whose start takes seconds. They run one after the
 * other; the first need an empty mesh, and those that kill parts of it come last.
 */
let mesh: TestMesh;
beforeAll(async () => {
  // All customers register from one address.
  mesh = await startMesh({ env: { MAIL_PER_NETWORK_HOUR: "100" } });
}, 120_000);
afterAll(async () => await mesh?.stop(), 60_000);

const onCluster = process.env.DEVMESH_E2E_BROKER === "cluster";
const suites = [
  discovery,
  specTables,
  customers,
  // What they send is the same, whatever runs the mesh.
  ...(onCluster ? [] : [clients]),
  topicIsolation,
  diagnostics,
  rpc,
  waitingCalls,
  webhookLoops,
  firmware,
  jobs,
  updates,
  deletion,
  shadow,
  presence,
];
for (const suite of suites) suite(() => mesh);
