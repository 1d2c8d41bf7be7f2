import { resolve } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import type { LauncherMessage } from "@devmesh/service-kit/process/run-service";
import { repository, serviceEntry } from "@devmesh/supervisor/mesh/service-process";
import { startProcess, type TestProcess } from "./process.ts";

/** Longest wait for a service to be ready, in milliseconds. */
const READY_MS = 60_000;

/** A service in a process, started as the launcher does. */
export interface SpawnedService extends TestProcess {
  /** The address of `/healthz`, `/readyz` and `/metrics`. Rejects with the output when it is not ready in time. */
  readonly ready: Promise<string>;
}

/** A service that is ready. */
export interface StartedService extends TestProcess {
  /** Address of `/healthz`, `/readyz` and `/metrics`. */
  readonly ops: string;
  /** What it measures, in the text form of Prometheus. */
  metrics(): Promise<string>;
  /** One sample of its metrics, such as `devmesh_rpc_calls_in_flight`; 0 when there is none yet. */
  metric(sample: string): Promise<number>;
}

/** Where `npm test` has bundled the services, whose start takes half the time; null: they run from their sources. */
export const bundles = process.env.SERVICE_BUNDLES ?? null;

/** Starts a service with this environment (and `PATH`) and returns at once. */
export function spawnService(service: ServiceName, env: Readonly<Record<string, string>>): SpawnedService {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const spawned = startProcess(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", resolve(repository, serviceEntry(service, bundles))],
    { ipc: true, env: { PATH, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }), ...env } },
  );
  const ready = new Promise<string>((resolve, reject) => {
    const fail = (how: string) => reject(new Error(`${service} ${how}:\n${spawned.output()}`));
    const timer = setTimeout(() => {
      spawned.child.kill("SIGKILL");
      fail("was not ready in time");
    }, READY_MS);
    spawned.child.once("message", (message: LauncherMessage) => {
      clearTimeout(timer);
      if (message.type === "ready") resolve(message.ops);
    });
    void spawned.ended.then(() => {
      clearTimeout(timer);
      fail("ended");
    });
  });
  // A test that expects the service to fail does not wait for it.
  ready.catch(() => undefined);
  return { ...spawned, ready };
}

/** Starts a service and resolves when it is ready. */
export async function startService(
  service: ServiceName,
  env: Readonly<Record<string, string>>,
): Promise<StartedService> {
  const { ready, ...started } = spawnService(service, env);
  const ops = await ready;
  const metrics = async () => await (await fetch(`${ops}/metrics`)).text();
  return {
    ...started,
    ops,
    metrics,
    async metric(sample) {
      const line = (await metrics()).split("\n").find((candidate) => candidate.startsWith(`${sample} `));
      return Number(line?.slice(sample.length + 1) ?? 0);
    },
  };
}
