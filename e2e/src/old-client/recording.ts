import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { JsonObject, JsonValue } from "@devmesh/contracts/model/json";
import { z } from "zod";

/** A call as a client of a released contract made it, and what came back. */
const RecordedCall = z.strictObject({
  method: z.string(),
  /** The service that made it. */
  caller: z.string(),
  /** As it was sent; `{{name}}` stands for what the mesh made up: see `keep`. */
  request: JsonObject,
  /** What later requests say again: by name, JSON pointers into the answer. */
  keep: z.record(z.string(), z.string()).optional(),
  /** Shape of the answer; absent when it was an error, and before it is recorded. */
  reply: JsonValue.optional(),
  /** Reason of the error that was answered. */
  error: z.string().optional(),
  /** Shape of that error's details. */
  details: JsonValue.optional(),
});
export type RecordedCall = z.infer<typeof RecordedCall>;

/** A job as a producer of a released contract queued it. */
const RecordedJob = z.strictObject({ queue: z.string(), producer: z.string(), job: JsonObject });

/** What clients of one released contract said, in the order in which they said it. */
export const Recording = z.strictObject({ calls: z.array(RecordedCall), jobs: z.array(RecordedJob) });
export type Recording = z.infer<typeof Recording>;

/** Where the recording of one version of a service's contract stands in the repository `root`. */
function recordingPath(root: string, service: string, version: number): string {
  return join(root, "services", service, "contract", "recorded", `v${version}.json`);
}

/** Reads a recording. Rejects when there is none, or it is not one. */
export async function readRecording(root: string, service: string, version: number): Promise<Recording> {
  return Recording.parse(JSON.parse(await readFile(recordingPath(root, service, version), "utf8")));
}

/** Replaces a recording. */
export async function writeRecording(
  root: string,
  service: string,
  version: number,
  recording: Recording,
): Promise<void> {
  await writeFile(recordingPath(root, service, version), `${JSON.stringify(recording, null, 2)}\n`);
}
