import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { mesh } from "@devmesh/contracts/mesh";
import { expect, test } from "@jest/globals";
import { z } from "zod";

const repository = join(import.meta.dirname, "../../..");

/** The members of turbo's `--dry=json` with what it would run. */
const DryRun = z.object({
  tasks: z.array(
    z.object({
      taskId: z.string(),
      command: z.string(),
      directory: z.string(),
      resolvedTaskDefinition: z.object({
        cache: z.boolean(),
        passThroughEnv: z.array(z.string()).nullable(),
      }),
    }),
  ),
});

test.each(Object.keys(mesh))(
  "turbo run test --filter=@devmesh/%s runs its suites alone, with the whole environment",
  async (service) => {
    const turbo = join(repository, "node_modules/.bin/turbo");
    const { stdout } = await promisify(execFile)(
      turbo,
      ["run", "test", `--filter=@devmesh/${service}`, "--dry=json"],
      { cwd: repository, env: { ...process.env, TURBO_TELEMETRY_DISABLED: "1" } },
    );
    const { tasks } = DryRun.parse(JSON.parse(stdout));
    expect(tasks.filter(({ command }) => command !== "<NONEXISTENT>")).toEqual([
      {
        taskId: `@devmesh/${service}#test`,
        directory: `services/${service}`,
        command: expect.stringContaining("jest"),
        // NATS_SERVER_BIN, MONGODB_URL and the like reach the suites as they do with npm test.
        resolvedTaskDefinition: { cache: true, passThroughEnv: ["*"] },
      },
    ]);
  },
);
