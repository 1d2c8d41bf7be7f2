import { readFile, rm } from "node:fs/promises";
import { z } from "zod";
import { commandLineOf } from "../process/command-line.ts";
import { StartFailure } from "../process/running-process.ts";
import { type DataFolder, replaceFile } from "./data-folder.ts";

const RunningPart = z.object({
  pid: z.int(),
  /** Address of `/healthz`, `/readyz` and `/metrics`. */
  ops: z.string().nullable(),
});

/** What `DATA_DIR/mesh.json` tells other scripts about a mesh that is up; it holds no secret. */
export const MeshFile = z.object({
  /** Process id of the launcher. */
  pid: z.int(),
  url: z.string(),
  /** One or more, comma-separated, as is `nats_url`. */
  mqtt_url: z.string(),
  /** Where devices reach the broker. */
  mqtt_public_url: z.string(),
  /** Path of the certificate that MQTT shows; null without TLS. */
  mqtt_tls_cert: z.string().nullable(),
  nats_url: z.string(),
  /** What the launcher was told of the settings that a service started beside it must share. */
  settings: z.object({ host: z.string(), port: z.int(), mqtt_port: z.int(), public_url: z.string() }),
  nats_server: z.object({ pid: z.int() }).nullable(),
  services: z.record(z.string(), RunningPart),
});
export type MeshFile = z.infer<typeof MeshFile>;

/** Keeps the file of one mesh in step with it. */
export interface MeshFileWriter {
  /** Replaces the file as a whole; one after the other. */
  write(mesh: MeshFile): Promise<void>;
  remove(): Promise<void>;
}

/** The only writer of a file. */
export function meshFileWriter(path: string): MeshFileWriter {
  let last: Promise<void> = Promise.resolve();
  const inTurn = (step: () => Promise<void>) => {
    const turn = last.then(step);
    last = turn.catch(() => {});
    return turn;
  };
  return {
    write: (mesh) => inTurn(() => replaceFile(path, `${JSON.stringify(mesh, null, 2)}\n`)),
    remove: () => inTurn(() => rm(path, { force: true })),
  };
}

/** The mesh the file tells of; null without a readable file. It may be left over: see whether `pid` runs. */
export async function readMeshFile(path: string): Promise<MeshFile | null> {
  try {
    return MeshFile.parse(JSON.parse(await readFile(path, "utf8")));
  } catch {
    return null;
  }
}

/** The mesh that runs with a data folder. Throws a {@link StartFailure} when there is none. */
export async function readRunningMesh(folder: DataFolder): Promise<MeshFile> {
  const mesh = await readMeshFile(folder.meshFile);
  if (mesh && (await commandLineOf(mesh.pid))?.includes("launch.ts")) return mesh;
  throw new StartFailure(
    `No mesh runs with the data folder ${folder.path}: start one with npm start, or set DATA_DIR.`,
  );
}
