import { readFile, rm } from "node:fs/promises";
import { secretPattern } from "@devmesh/contracts/model/api-key";
import { z } from "zod";
import { commandLineOf } from "../process/command-line.ts";
import { StartFailure } from "../process/errors.ts";
import { type DataFolder, dataFolder, replaceFile } from "./data-folder.ts";
import { meshSettings } from "./settings.ts";

const RunningPart = z.object({
  pid: z.int(),
  /** Address of `/healthz`, `/readyz` and `/metrics`. */
  ops: z.string().nullable(),
});

/** `DATA_DIR/mesh.json`: a mesh that is up, for other programs; without secrets. */
export const MeshFile = z.object({
  /** Process id of the supervisor. */
  pid: z.int(),
  url: z.string(),
  /** One or more, comma-separated, as is `nats_url`. */
  mqtt_url: z.string(),
  /** Where devices reach the broker. */
  mqtt_public_url: z.string(),
  /** Path of the certificate that MQTT shows; null without TLS. */
  mqtt_tls_cert: z.string().nullable(),
  nats_url: z.string(),
  /** Settings of the supervisor that a service started beside it must share. */
  settings: z.object({ host: z.string(), port: z.int(), mqtt_port: z.int(), public_url: z.string() }),
  nats_server: z.object({ pid: z.int() }).nullable(),
  services: z.record(z.string(), RunningPart),
});
export type MeshFile = z.infer<typeof MeshFile>;

/** The only writer of a file: it replaces the file atomically, one write at a time. */
export function meshFileWriter(path: string) {
  let last: Promise<void> = Promise.resolve();
  const afterLast = (step: () => Promise<void>) => {
    const done = last.then(step);
    last = done.catch(() => {});
    return done;
  };
  return {
    write: (mesh: MeshFile) => afterLast(() => replaceFile(path, `${JSON.stringify(mesh, null, 2)}\n`)),
    remove: () => afterLast(() => rm(path, { force: true })),
  };
}

/** Reads the file; null without a readable one. It may be left over: check whether `pid` runs. */
export async function readMeshFile(path: string): Promise<MeshFile | null> {
  try {
    return MeshFile.parse(JSON.parse(await readFile(path, "utf8")));
  } catch {
    return null;
  }
}

/** In the command line of a process that runs a mesh: `npm start`, and the single image. */
const programs = /launcher\/src\/launch\.ts|supervisor\/src\/main\.ts/;

/** The mesh that runs with a data folder. Throws a {@link StartFailure} when there is none. */
export async function readRunningMesh(folder: DataFolder): Promise<MeshFile> {
  const mesh = await readMeshFile(folder.meshFile);
  if (mesh && programs.test((await commandLineOf(mesh.pid)) ?? "")) return mesh;
  throw new StartFailure(
    `No mesh runs with the data folder ${folder.path}: start one with npm start, or set DATA_DIR.`,
  );
}

/**
 * Access to the mesh that runs with the environment's `DATA_DIR`, by its first master key or that of `DEVMESH_KEY`.
 * Throws a `StartFailure` when none runs.
 */
export async function accessRunningMesh(env: NodeJS.ProcessEnv) {
  const folder = dataFolder(meshSettings(env).dataDir);
  const { url, mqtt_url, mqtt_tls_cert } = await readRunningMesh(folder);
  const masterKey = (env.DEVMESH_KEY || (await readFile(folder.masterKey, "utf8"))).trim();
  // fetch would quote the key in its error.
  if (!secretPattern.test(masterKey))
    throw new StartFailure(`${env.DEVMESH_KEY ? "DEVMESH_KEY" : folder.masterKey} holds no API key.`);
  return {
    /** Of the REST API, without a trailing slash. */
    url,
    mqttUrl: mqtt_url,
    /** PEM file of the certificate of MQTT over TLS; undefined without TLS. */
    mqttTlsCert: mqtt_tls_cert ?? undefined,
    masterKey,
  };
}

/** Addresses and master key of a mesh. */
export type MeshAccess = Awaited<ReturnType<typeof accessRunningMesh>>;
