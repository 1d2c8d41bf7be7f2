import { join } from "node:path";
import { repository } from "./mesh/service-process.ts";
import { meshArguments, usage } from "./mesh-arguments.ts";
import { runCommand } from "./process/command.ts";
import { runMesh } from "./run-mesh.ts";

/*
 * The single image: all of it is built, and nats-server is on the PATH (Dockerfile).
 */
await runCommand({
  usage,
  read: meshArguments,
  run: (wanted) =>
    runMesh({
      ...wanted,
      findNatsServer: async () => "nats-server",
      findBundles: async () => join(repository, "dist", "image"),
      container: true,
    }),
});
