import type { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { type MeshFile, readMeshFile } from "@devmesh/supervisor/mesh/mesh-file";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { startCluster, type TestCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { freePort, onFreePorts } from "./free-port.ts";
import { type HttpClient, httpClient } from "./http.ts";
import { findMongodb, testDatabasePrefix, withoutMongodb } from "./mongodb.ts";
import { hasEnded, startProcess } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** Longest wait, in milliseconds, for the `ready` line and for an orderly stop. */
const READY_MS = 90_000;
const STOP_MS = 60_000;

/** How a mesh is launched. */
export interface TestMeshOptions {
  /** Overrides the free ports and the folder, too. */
  readonly env?: NodeJS.ProcessEnv;
  /** Arguments of the launcher: `--demo`, `--without NAME`. */
  readonly args?: readonly string[];
  /** A folder that outlives the mesh; without it, a temporary one. */
  readonly dataDir?: string;
  /** The launcher's nats-server, or a cluster of three. Default: `DEVMESH_E2E_BROKER`, or the launcher's. */
  readonly broker?: "own" | "cluster";
  /** SQLite files, or databases in MongoDB. Default: `DEVMESH_E2E_STORE`, or SQLite. */
  readonly store?: "sqlite" | "mongodb";
  /** Through `npm start`, `run.mjs`, or on a terminal by `script` of util-linux; default: the launcher itself. */
  readonly through?: "npm" | "run.mjs" | "terminal" | "launch.ts";
}

/** A launcher whose mesh may not be up yet. */
export interface LaunchedMesh extends AsyncDisposable {
  readonly dataDir: string;
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  readonly mqttUrl: string;
  readonly ports: { readonly http: number; readonly mqtt: number; readonly nats: number };
  readonly process: ChildProcess;
  /** Its cluster, or null. `mqttUrl`, and the part "nats-server", are then those of the first server. */
  readonly cluster: TestCluster | null;
  /** `STORE_URL` of the launcher; undefined for SQLite files in the data folder. */
  readonly storeUrl: string | undefined;
  /** All that the launcher printed so far. */
  output(): string;
  /** Resolves with the `ready` line; rejects when the launcher ends without it. */
  ready(): Promise<string>;
  /** Resolves with the exit code of the launcher, null when it was killed. */
  ended(): Promise<number | null>;
  /** Process ids and addresses of the parts that run now. */
  parts(): Promise<MeshFile>;
  /** SIGTERM, then SIGKILL after a while; removes the data folder if it is temporary. */
  stop(): Promise<void>;
}

/** A mesh that is up. */
export interface TestMesh extends LaunchedMesh {
  readonly masterKey: string;
  /** The REST API with the master key. */
  readonly http: HttpClient;
  /** Ends one part by a signal (default SIGKILL); its launcher restarts it. */
  kill(part: ServiceName | "nats-server", signal?: NodeJS.Signals): Promise<void>;
  /** Waits until a part runs with another process id. */
  restarted(part: ServiceName | "nats-server", formerPid: number): Promise<void>;
  /** The process id of a part that runs now. */
  pidOf(part: ServiceName | "nats-server"): Promise<number>;
}

function commandOf(through: TestMeshOptions["through"]): [string, ...string[]] {
  if (through === "npm") return ["npm", "start", "--silent", "--"];
  const launcher = join(repository, "tools/launcher");
  const program =
    through === "run.mjs" ? [join(launcher, "run.mjs"), "start"] : [join(launcher, "src/launch.ts")];
  const command = [process.execPath, "--disable-warning=ExperimentalWarning", ...program] as const;
  // The channel does not reach the launcher through `script`.
  if (through === "terminal")
    return ["script", "-qec", `env -u NODE_CHANNEL_FD ${command.join(" ")}`, "/dev/null"];
  return [...command];
}

/** Starts the launcher on free ports of 127.0.0.1 and returns at once. */
export async function launchMesh(options: TestMeshOptions = {}): Promise<LaunchedMesh> {
  const folder = await tempFolder();
  const dataDir = options.dataDir ?? join(folder.path, "data");
  const wantsCluster = (options.broker ?? process.env.DEVMESH_E2E_BROKER) === "cluster";
  const cluster = wantsCluster ? await startCluster(dataDir) : null;
  const database =
    (options.store ?? process.env.DEVMESH_E2E_STORE) === "mongodb" ? await databaseOf(dataDir) : null;
  const [first] = cluster?.servers ?? [];
  const ports = {
    http: await freePort(),
    mqtt: first?.mqttPort ?? (await freePort()),
    nats: first?.port ?? (await freePort()),
  };
  const [command, ...before] = commandOf(options.through);
  const { child, output, ended } = startProcess(command, [...before, ...(options.args ?? [])], {
    cwd: repository,
    env: {
      ...process.env,
      NATS_URL: undefined,
      HOST: "127.0.0.1",
      PORT: String(ports.http),
      MQTT_PORT: String(ports.mqtt),
      NATS_PORT: String(ports.nats),
      DATA_DIR: dataDir,
      ...(database === null ? {} : { STORE_URL: database.storeUrl }),
      ...cluster?.env,
      ...options.env,
    },
    // The channel makes the launcher end when the test's process does.
    ipc: true,
    detached: true,
  });

  async function stop() {
    if (!hasEnded(child)) child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
    await cluster?.stop();
    if (options.dataDir === undefined) await database?.drop();
    await folder.remove();
  }
  return {
    dataDir,
    url: `http://127.0.0.1:${ports.http}`,
    mqttUrl: `mqtt://127.0.0.1:${ports.mqtt}`,
    cluster,
    storeUrl: options.env?.STORE_URL ?? database?.storeUrl,
    ports,
    process: child,
    output,
    ready: () =>
      eventually(
        () => {
          const line = /^ready .*$/m.exec(output())?.[0];
          return line ?? (hasEnded(child) ? `ended:\n${output()}` : null);
        },
        { withinMs: READY_MS },
      ).then(
        (line) => {
          if (!line.startsWith("ready ")) throw new Error(`the mesh did not come up; its launcher ${line}`);
          return line;
        },
        (cause: unknown) => {
          throw new Error(`the mesh is not up after ${READY_MS} ms; its launcher:\n${output()}`, { cause });
        },
      ),
    ended: () => ended,
    async parts() {
      const parts = await readMeshFile(join(dataDir, "mesh.json"));
      if (!parts) throw new Error("the mesh is not up");
      return parts;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The databases of a mesh in MongoDB, the same each time for a data folder. */
async function databaseOf(dataDir: string): Promise<{ storeUrl: string; drop(): Promise<void> }> {
  const mongodb = await findMongodb();
  if (mongodb === null) throw new Error(`a mesh over MongoDB needs one: ${withoutMongodb}`);
  const name = `${testDatabasePrefix}_${createHash("sha256").update(dataDir).digest("hex").slice(0, 12)}`;
  return { storeUrl: mongodb.storeUrlOf(name), drop: () => mongodb.dropDatabases(`${name}_`) };
}

/** Starts a whole mesh and waits until it is ready. Throws with the launcher's output when it is not. */
export async function startMesh(options: TestMeshOptions = {}): Promise<TestMesh> {
  return await onFreePorts(() => startMeshOnce(options));
}

async function startMeshOnce(options: TestMeshOptions): Promise<TestMesh> {
  const launched = await launchMesh(options);
  try {
    await launched.ready();
  } catch (error) {
    await launched.stop();
    throw error;
  }
  const masterKey = (await readFile(join(launched.dataDir, "master-key"), "utf8")).trim();
  const [first] = launched.cluster?.servers ?? [];
  const pidOf = async (part: ServiceName | "nats-server") => {
    if (part === "nats-server" && first) return first.pid;
    const parts = await launched.parts();
    const running = part === "nats-server" ? parts.nats_server : parts.services[part];
    if (!running) throw new Error(`${part} does not run now`);
    return running.pid;
  };
  return {
    ...launched,
    masterKey,
    http: httpClient(launched.url, masterKey),
    pidOf,
    async kill(part, signal = "SIGKILL") {
      if (part === "nats-server" && first) return await launched.cluster?.crash(first, signal);
      process.kill(await pidOf(part), signal);
    },
    async restarted(part, formerPid) {
      await eventually(async () => (await pidOf(part)) !== formerPid, { withinMs: READY_MS });
    },
  };
}
