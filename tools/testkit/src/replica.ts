import { join } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { environmentBeside } from "@devmesh/supervisor/mesh/environment-beside";
import { serviceLog } from "@devmesh/supervisor/mesh/service-log";
import { repository, startService } from "@devmesh/supervisor/mesh/service-process";
import { childRegistry } from "@devmesh/supervisor/process/child-registry";
import { freePort } from "./free-port.ts";
import { bundles } from "./service-process.ts";

/** Longest wait for an orderly stop, in milliseconds: more than the service allows itself. */
const STOP_MS = 50_000;

/** One more process of a service, beside that of a mesh; nobody restarts it. */
export interface StartedReplica extends AsyncDisposable {
  readonly service: ServiceName;
  readonly pid: number;
  /** Address of `/healthz`, `/readyz` and `/metrics`. */
  readonly ops: string;
  /** Address of the REST API, of a gateway. */
  readonly url: string;
  /** Resolves with how it ended. */
  readonly ended: Promise<string>;
  /** Ends it by a signal (default SIGTERM) and waits for its end. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

const children = childRegistry();

/**
 * Starts another replica of a service of the mesh with that data folder and resolves when it is ready. For a service
 * with a store, `env` must hold the `STORE_URL` of the mesh.
 */
export async function startReplica(
  dataDir: string,
  service: ServiceName,
  env: NodeJS.ProcessEnv = {},
): Promise<StartedReplica> {
  const port = await freePort();
  const environment = await environmentBeside(dataDir, service, {
    ...process.env,
    NATS_URL: undefined,
    PORT: String(port),
    ...env,
  });
  const log = serviceLog(`${service} (replica)`, join(dataDir, "logs", `${service}-${port}.log`), () => {});
  const { pid, ops, ended, end } = await startService(
    service,
    environment,
    log,
    { repository, bundles, dataDir, children, log: () => {} },
    new AbortController().signal,
  );
  void ended.then(() => log.close());
  return {
    service,
    pid,
    ops: ops ?? "",
    url: `http://127.0.0.1:${port}`,
    ended,
    async end(signal = "SIGTERM") {
      if (signal !== "SIGTERM") process.kill(pid, signal);
      await end(STOP_MS);
    },
    [Symbol.asyncDispose]: () => end(STOP_MS),
  };
}
