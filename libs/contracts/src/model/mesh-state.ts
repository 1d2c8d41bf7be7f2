import { z } from "zod";
import { Timestamp } from "./time.ts";

/** One process of a service, as its `$SRV.STATS` reports it (ADR 5). Counts begin at its start. */
const Replica = z.object({
  /** Unique among all replicas of all services. */
  id: z.string(),
  /** Semantic version; the first number is the contract's. */
  version: z.string(),
  started: z.string().meta({ format: "date-time", example: "2026-01-31T12:00:00.000Z" }),
  endpoints: z.array(
    z.object({
      name: z.string(),
      requests: z.int().min(0),
      errors: z.int().min(0),
      /** Mean time of a request, in milliseconds; 0 before the first. */
      mean_ms: z.number().min(0),
      /** Total time of all requests, in milliseconds. */
      total_ms: z.number().min(0),
    }),
  ),
});

/** Length of a queue; null where its owner does not answer. */
const Waiting = z.int().min(0).nullable();

/** Replicas and queues of the mesh. */
export const MeshState = z.object({
  timestamp: Timestamp,
  /** In alphabetical order; a service without a replica is not listed. */
  services: z.array(z.object({ name: z.string(), replicas: z.array(Replica) })),
  queues: z.object({
    /** Messages of devices that are not stored yet. */
    data: Waiting,
    /** Shadow requests and events of devices that are not handled yet. */
    rpc_bridge: Waiting,
    mail: Waiting,
    dead_mail: Waiting,
  }),
});
export type MeshState = z.infer<typeof MeshState>;
