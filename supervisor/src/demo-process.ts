import { once } from "node:events";
import { join } from "node:path";
import { z } from "zod";
import type { ChildRegistry, RegisteredChild } from "./process/child-registry.ts";

/** The one message of the simulator. */
const Report = z.union([z.object({ devices: z.array(z.string()) }), z.object({ error: z.string() })]);

const graceMs = 5_000;

/** Simulated devices in another process. */
export interface Demo {
  readonly devices: readonly string[];
  stop(): Promise<void>;
}

/**
 * Starts the simulated devices of `--demo` against the mesh of `dataDir`. Throws when one of them cannot be created
 * or connected.
 */
export async function startDemo(children: ChildRegistry, repository: string, dataDir: string): Promise<Demo> {
  const program = join(repository, "tools/simulator/src/demo.ts");
  const child = children.spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program], {
    env: { ...process.env, DATA_DIR: dataDir },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    guarded: false,
  });
  const report = await reportOf(child);
  if ("error" in report) throw new Error(report.error);
  return { devices: report.devices, stop: () => child.end(graceMs) };
}

async function reportOf(child: RegisteredChild): Promise<z.infer<typeof Report>> {
  const sent = once(child.process, "message").then(([message]) => Report.parse(message));
  const ended = child.ended.then((how) => ({ error: `their process ${how}` }));
  return await Promise.race([sent, ended]);
}
