import { codes, type EventsDeclaration, type QueueDeclaration } from "@devmesh/contracts/contract";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { eventsNamed, methodSubject, queueSubject } from "@devmesh/service-kit/subjects";
import { z } from "zod";
import { describeSchema } from "./describe-schema.ts";
import { JsonSchema } from "./json-schema.ts";

const MethodSurface = z.strictObject({
  subject: z.string(),
  /** Milliseconds. */
  deadline_ms: z.int(),
  idempotent: z.boolean(),
  /** Returns `{next, items}`; `next` is the `after` of the next page, null on the last. */
  paged: z.boolean(),
  input: JsonSchema,
  output: JsonSchema,
  /** By reason. */
  errors: z.record(z.string(), z.strictObject({ code: z.enum(codes), details: JsonSchema.optional() })),
});
export type MethodSurface = z.infer<typeof MethodSurface>;

/**
 * What others see of a service on the bus: methods, events, queues. Generated from its contract and committed beside
 * the service (ADR 15).
 */
export const ContractSurface = z.strictObject({
  service: z.string(),
  /** Part of the subjects of methods, not of events and queues. */
  version: z.int().min(1),
  methods: z.record(z.string(), MethodSurface),
  events: z.record(z.string(), z.strictObject({ subject: z.string(), payload: JsonSchema })),
  /** Queues that it fills. */
  produces: z.record(z.string(), z.strictObject({ subject: z.string(), job: JsonSchema })),
  /** Queues that it consumes. */
  consumes: z.record(z.string(), z.strictObject({ subject: z.string(), job: JsonSchema })),
});
export type ContractSurface = z.infer<typeof ContractSurface>;

/** The surface of a service; null when it is not on the bus. Throws a `TypeError` where it cannot be described. */
export function surfaceOf(service: string, declaration: ServiceDeclaration): ContractSurface | null {
  const { serves, publishes, produces, consumes } = declaration;
  if (serves === null && publishes === null && produces.length === 0 && consumes.length === 0) return null;
  return {
    service,
    version: serves?.version ?? 1,
    methods: Object.fromEntries(
      Object.keys(serves?.methods ?? {}).map((method) => [method, methodSurface(declaration, method)]),
    ),
    events: eventSurfaces(service, publishes),
    produces: queueSurfaces(service, produces, "given"),
    consumes: queueSurfaces(service, consumes, "taken"),
  };
}

function methodSurface({ serves }: ServiceDeclaration, name: string): MethodSurface {
  const method = serves?.methods[name];
  if (serves === null || method === undefined) throw new TypeError(`there is no method ${name}`);
  const where = `${serves.service}.${name}`;
  const output = described(`${where} output`, method.out, "given");
  return {
    subject: methodSubject(serves, name),
    deadline_ms: method.deadlineMs,
    idempotent: method.idempotent,
    paged: output.properties?.next !== undefined && output.properties.items !== undefined,
    input: described(`${where} input`, method.in, "taken"),
    output,
    errors: Object.fromEntries(
      Object.entries(method.errors).map(([reason, { code, details }]) => [
        reason,
        details === undefined
          ? { code }
          : { code, details: described(`${where} ${reason}`, details, "given") },
      ]),
    ),
  };
}

function eventSurfaces(service: string, declared: EventsDeclaration | null): ContractSurface["events"] {
  return Object.fromEntries(
    Object.entries(declared?.events ?? {}).map(([name, { schema, live }]) => [
      name,
      {
        subject: eventsNamed(service, name, live === undefined ? {} : { live }),
        payload: described(`${service}.${name}`, schema, "given"),
      },
    ]),
  );
}

function queueSurfaces(service: string, queues: readonly QueueDeclaration[], side: "taken" | "given") {
  return Object.fromEntries(
    queues.map(({ name, job }) => [
      name,
      { subject: queueSubject(name), job: described(`${service} ${name}`, job, side) },
    ]),
  );
}

function described(where: string, schema: z.ZodType, side: "taken" | "given"): JsonSchema {
  try {
    return describeSchema(schema, side);
  } catch (cause) {
    throw new TypeError(`${where} cannot be described`, { cause });
  }
}
