import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll } from "@jest/globals";
import { deletion } from "./one-mesh/deletion.suite.ts";
import { presence } from "./one-mesh/presence.suite.ts";
import { rpc } from "./one-mesh/rpc.suite.ts";
import { shadow } from "./one-mesh/shadow.suite.ts";
import { topicIsolation } from "./one-mesh/topic-isolation.suite.ts";

/*
 * Suites that need devices of their own and no settings share a mesh, whose start takes seconds. They run one after the
 * other; those that kill parts of the mesh come last.
 */
let mesh: TestMesh;
beforeAll(async () => {
  mesh = await startMesh();
}, 120_000);
afterAll(async () => await mesh?.stop(), 60_000);

for (const suite of [topicIsolation, rpc, deletion, shadow, presence]) suite(() => mesh);
