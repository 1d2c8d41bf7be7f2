import { meshArguments, usage } from "@devmesh/supervisor/mesh-arguments";
import { runCommand } from "@devmesh/supervisor/process/command";
import { runMesh } from "@devmesh/supervisor/run-mesh";
import { buildDashboard } from "./build/dashboard-build.ts";
import { bundleServices } from "./build/service-bundles.ts";
import { findNatsServer } from "./nats-server/find-nats-server.ts";

/*
 * `npm start`: builds the services and the dashboard and fetches nats-server, where they are missing, and runs a mesh.
 */
await runCommand({
  usage,
  read: meshArguments,
  run: (wanted) =>
    runMesh({
      ...wanted,
      findNatsServer: async (search) => (await findNatsServer(search)).path,
      async findBundles(build, signal) {
        const [bundles] = await Promise.all([
          bundleServices(build, signal),
          wanted.without.has("gateway") ? undefined : buildDashboard(build, signal),
        ]);
        return bundles;
      },
      container: false,
    }),
});
