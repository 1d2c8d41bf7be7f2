import type { QueueDeclaration } from "@devmesh/contracts/contract";
import type { z } from "zod";

/** A job as its queue keeps it. Throws when it is no JSON or does not match the queue's schema. */
export function parseJob<Q extends QueueDeclaration>(queue: Q, payload: Uint8Array): z.output<Q["job"]> {
  return queue.job.parse(JSON.parse(new TextDecoder().decode(payload))) as z.output<Q["job"]>;
}
