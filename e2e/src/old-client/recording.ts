import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ContractSurface, surfaceOf } from "@devmesh/contract-check/surface";
import { readReleasedSurfaces } from "@devmesh/contract-check/surface-files";
import { mesh } from "@devmesh/contracts/mesh";
import { isJsonObject, type Json, JsonObject, JsonValue } from "@devmesh/contracts/model/json";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { z } from "zod";

/** A call of a client of a released contract, and its answer. */
const RecordedCall = z.strictObject({
  method: z.string(),
  /** The calling service. */
  caller: z.string(),
  /** As sent; `{{name}}` is a value that the mesh made up (see `keep`). */
  request: JsonObject,
  /** Values for later requests: JSON pointers into the answer by name. */
  keep: z.record(z.string(), z.string()).optional(),
  /** Shape of the answer; absent for an error, and before it is recorded. */
  reply: JsonValue.optional(),
  /** Reason of an error. */
  error: z.string().optional(),
  /** Shape of the error's details. */
  details: JsonValue.optional(),
});
export type RecordedCall = z.infer<typeof RecordedCall>;

/** A job of a producer of a released contract. */
const RecordedJob = z.strictObject({ queue: z.string(), producer: z.string(), job: JsonObject });

/** What clients of one released contract sent, in order. */
export const Recording = z.strictObject({ calls: z.array(RecordedCall), jobs: z.array(RecordedJob) });
export type Recording = z.infer<typeof Recording>;

/** Path of the recording of a contract's version in the repository `root`. */
function recordingPath(root: string, service: string, version: number): string {
  return join(root, "services", service, "contract", "recorded", `v${version}.json`);
}

async function readRecording(root: string, service: string, version: number): Promise<Recording> {
  return Recording.parse(JSON.parse(await readFile(recordingPath(root, service, version), "utf8")));
}

export async function writeRecording(
  root: string,
  service: string,
  version: number,
  recording: Recording,
): Promise<void> {
  await writeFile(recordingPath(root, service, version), `${JSON.stringify(recording, null, 2)}\n`);
}

/** What an old client of a service knows, and what it sent. */
export interface KnownContract {
  readonly service: string;
  readonly version: number;
  /** The released surface, with present additions. */
  readonly surface: ContractSurface;
  readonly recording: Recording;
}

/** The present versions of all contracts. */
export async function knownContracts(root: string): Promise<KnownContract[]> {
  const known: KnownContract[] = [];
  for (const [service, declaration] of Object.entries<ServiceDeclaration>(mesh)) {
    const now = surfaceOf(service, declaration);
    if (now === null) continue;
    const { version } = now;
    const released = (await readReleasedSurfaces(root, service)).find((one) => one.version === version);
    const surface: ContractSurface = {
      ...now,
      methods: { ...now.methods, ...released?.methods },
      events: { ...now.events, ...released?.events },
      consumes: { ...now.consumes, ...released?.consumes },
    };
    known.push({ service, version, surface, recording: await readRecording(root, service, version) });
  }
  return known;
}

/** Values that a mesh made up, such as ids and secrets, by their names in recorded requests. */
export type MadeUp = Map<string, Json>;

/** A recorded request with `{{name}}` replaced by values. Throws for an unknown name. */
export function filledIn(recorded: Json, madeUp: ReadonlyMap<string, Json>): Json {
  if (Array.isArray(recorded)) return recorded.map((element) => filledIn(element, madeUp));
  if (isJsonObject(recorded)) {
    return Object.fromEntries(
      Object.entries(recorded).map(([name, member]) => [name, filledIn(member, madeUp)]),
    );
  }
  const name = typeof recorded === "string" ? /^\{\{(\w+)\}\}$/.exec(recorded)?.[1] : undefined;
  if (name === undefined) return recorded;
  const value = madeUp.get(name);
  if (value === undefined) throw new Error(`no earlier answer has ${name}`);
  return value;
}

/** The value at a JSON pointer without escapes; undefined where there is none. */
export function valueAt(value: Json, pointer: string): Json | undefined {
  let at: Json | undefined = value;
  for (const name of pointer.split("/").slice(1)) {
    if (Array.isArray(at)) at = at[Number(name)];
    else at = at !== undefined && isJsonObject(at) ? at[name] : undefined;
  }
  return at;
}
