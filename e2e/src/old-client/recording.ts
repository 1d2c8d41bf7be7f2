import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ContractSurface, surfaceOf } from "@devmesh/contract-check/surface";
import { readReleasedSurfaces } from "@devmesh/contract-check/surface-files";
import { mesh } from "@devmesh/contracts/mesh";
import { isJsonObject, type Json, JsonObject } from "@devmesh/contracts/model/json";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { z } from "zod";

/** A call of a client of a released contract. */
const RecordedCall = z.strictObject({
  method: z.string(),
  /** The calling service. */
  caller: z.string(),
  /** As sent; `{{name}}` is a value that the mesh made up (see `keep`). */
  request: JsonObject,
  /** Values for later requests: JSON pointers into the answer by name. */
  keep: z.record(z.string(), z.string()).optional(),
  /** Reason of the error that it gets; absent when it gets an answer. */
  error: z.string().optional(),
});
export type RecordedCall = z.infer<typeof RecordedCall>;

/** A job of a producer of a released contract. */
const RecordedJob = z.strictObject({ queue: z.string(), producer: z.string(), job: JsonObject });

/** What clients of one released contract sent, in order. */
const Recording = z.strictObject({ calls: z.array(RecordedCall), jobs: z.array(RecordedJob) });
type Recording = z.infer<typeof Recording>;

async function readRecording(root: string, service: string, version: number): Promise<Recording> {
  const path = join(root, "services", service, "contract", "recorded", `v${version}.json`);
  return Recording.parse(JSON.parse(await readFile(path, "utf8")));
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
