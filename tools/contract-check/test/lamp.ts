import type { ErrorDeclaration } from "@devmesh/contracts/contract";
import { defineService, type ServiceDeclaration } from "@devmesh/contracts/topology";
import { z } from "zod";
import { type ContractSurface, surfaceOf } from "../src/surface.ts";

/** What of the lamp's contract is to differ from the plain one. */
export interface LampContract {
  readonly version?: number;
  readonly input?: z.ZodType;
  readonly output?: z.ZodType;
  readonly deadlineMs?: number;
  readonly idempotent?: boolean;
  readonly errors?: Readonly<Record<string, ErrorDeclaration>>;
  /** Methods besides `switch`; a name alone gets a plain method, and without `switch` there is none. */
  readonly methods?: readonly string[];
  /** By name. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  readonly queued?: z.ZodType;
  readonly done?: z.ZodType;
}

/** The declaration of a service that exists for these tests alone. */
export function lampService(lamp: LampContract = {}): ServiceDeclaration {
  const { input = z.object({}), output = z.object({}), events = {}, methods = ["switch"] } = lamp;
  const method = {
    in: input,
    out: output,
    deadlineMs: lamp.deadlineMs ?? 1_000,
    idempotent: lamp.idempotent ?? true,
    errors: lamp.errors ?? {},
  };
  const queue = (name: string, job: z.ZodType) => ({ name, job, backoffMs: [], attemptMs: 1_000 });
  return defineService({
    serves: {
      service: "lamp",
      version: lamp.version ?? 1,
      methods: Object.fromEntries(methods.map((name) => [name, method])),
    },
    publishes: {
      service: "lamp",
      events: Object.fromEntries(
        Object.entries(events).map(([name, schema]) => [name, { schema, key: () => "all" }]),
      ),
    },
    produces: lamp.queued === undefined ? [] : [queue("bulbs", lamp.queued)],
    consumes: lamp.done === undefined ? [] : [queue("sockets", lamp.done)],
  });
}

/** The surface of that service, as it would be read back from its file. */
export function lampSurface(lamp: LampContract = {}): ContractSurface {
  const surface = surfaceOf("lamp", lampService(lamp));
  if (surface === null) throw new Error("the lamp says something");
  return JSON.parse(JSON.stringify(surface));
}
