import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startChild } from "../child.ts";
import type { Credentials } from "../mesh-tenant.ts";

/** A publisher with one connection. */
export interface RecordPublisher extends Credentials {
  readonly clientId: string;
}

/** What devices publish: records below `db/`, or updates of their shadows. */
export type PublishedCount = "records" | "shadow";

/** When publishers began, and when the last message was acknowledged; Unix milliseconds. */
export interface PublishReport {
  readonly began: number;
  readonly ended: number;
  readonly messages: number;
  /** From a message to its acknowledgement, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** What {@link publish} sends. */
export interface PublishingOptions {
  /** Of the MQTT listener. */
  readonly port: number;
  /** For a file that has the publishers. */
  readonly folder: string;
  readonly publishers: readonly RecordPublisher[];
  readonly kind: PublishedCount;
  /** Messages of all publishers. */
  readonly messages: number;
  /** Unacknowledged messages of all publishers. */
  readonly inFlight: number;
}

/** Publishes at QoS 1 in a separate process, and returns when all is acknowledged. */
export async function publish(options: PublishingOptions): Promise<PublishReport> {
  const { port, folder, publishers, kind, messages, inFlight } = options;
  const path = join(folder, "publishers.json");
  await writeFile(path, JSON.stringify(publishers));
  await using child = startChild(import.meta.resolve("./publishers.ts"), {
    BENCH_MQTT_PORT: String(port),
    BENCH_PUBLISHERS: path,
    BENCH_PUBLISHED: kind,
    BENCH_MESSAGES: String(messages),
    BENCH_WINDOW: String(inFlight / publishers.length),
  });
  return (await child.ready) as PublishReport;
}
