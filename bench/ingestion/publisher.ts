import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Credentials } from "../mesh-tenant.ts";

/** What publishes, with a connection of its own. */
export interface Publisher extends Credentials {
  readonly clientId: string;
}

/** What devices publish: records below `db/`, or updates of their own shadow. */
export type Published = "records" | "shadow";

/** When publishers began, and when the last message was acknowledged; Unix milliseconds. */
export interface PublishReport {
  readonly began: number;
  readonly ended: number;
  readonly messages: number;
}

/** Writes them for the process that publishes, and returns the path. */
export async function writePublishers(folder: string, publishers: readonly Publisher[]): Promise<string> {
  const path = join(folder, "publishers.json");
  await writeFile(path, JSON.stringify(publishers));
  return path;
}
