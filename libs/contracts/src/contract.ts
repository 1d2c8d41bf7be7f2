import { z } from "zod";

/**
 * The closed set of error codes between services (ADR 4), with the number of the `Nats-Service-Error-Code` header
 * (ADR-32). They are the HTTP statuses too; the gateway refines them for a few reasons.
 */
export const statusOfCode = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  conflict: 409,
  resource_exhausted: 429,
  deadline_exceeded: 504,
  unavailable: 503,
  internal: 500,
} as const;

export type Code = keyof typeof statusOfCode;

/** Every error code. */
export const codes = Object.keys(statusOfCode) as Code[];

/** What a declared error carries besides its code: nothing, or `details` of the given schema. */
export interface ErrorDeclaration {
  readonly code: Code;
  /** One sentence for docs/errors.md. */
  readonly when: string;
  /** Travels with the error; parsed by the receiving side. Must hold no secret. */
  readonly details?: z.ZodType;
  /**
   * Where an earlier attempt of the same call may have been carried out, the error means that it was: the caller gets
   * the answer `{}`. For idempotent methods.
   */
  readonly meansDone?: true;
}

/** One procedure of a service. */
export interface MethodDeclaration {
  readonly in: z.ZodType;
  readonly out: z.ZodType;
  /** Upper bound, in milliseconds, for one call; a caller's remaining time shortens it, never lengthens it. */
  readonly deadlineMs: number;
  /** A call may be sent again after `unavailable`: doing it twice equals doing it once. */
  readonly idempotent: boolean;
  /** Reason → declaration. Every reason that the service returns must be declared here. */
  readonly errors: Readonly<Record<string, ErrorDeclaration>>;
}

const answersSoon = { deadlineMs: 5_000, errors: {} } as const;

/** The usual method that may be sent again; a declaration spreads it and names what differs. */
export const idempotent = { ...answersSoon, idempotent: true } as const;
/** A method that must not be done twice. */
export const notIdempotent = { ...answersSoon, idempotent: false } as const;

/** The error of a method that finds nothing to delete or to take, not even what its own first attempt took. */
export const doneIfRepeated = <const E extends ErrorDeclaration>(error: E) =>
  ({ ...error, meansDone: true }) as const;

/** The answer of a method that has nothing to say. */
export const done = z.object({});

/** An error as it is sent. */
export const WireError = z.object({
  code: z.enum(codes),
  reason: z.string(),
  message: z.string().optional(),
  details: z.unknown().optional(),
  service: z.string().optional(),
});
export type WireError = z.infer<typeof WireError>;

/** All that one service answers, as a value: server and client types, subjects, permissions and docs derive from it. */
export interface ContractDeclaration {
  readonly service: string;
  /** Part of the subject. A new version is a new contract, served beside the old one while it has callers. */
  readonly version: number;
  readonly methods: Readonly<Record<string, MethodDeclaration>>;
}

/** Declares a contract and keeps its literal types. */
export function defineContract<const C extends ContractDeclaration>(contract: C): C {
  return contract;
}

/** A kind of event. Its subject is `event.<service>.<name>.<key>`, or `live.<service>.<name>.<key>` for a live one. */
export interface EventDeclaration {
  /** Last token of the subject: the id of the device, or of the other thing that the event is about. */
  readonly key: (payload: never) => string;
  readonly schema: z.ZodType;
  /** Not stored: for events that are too many to keep, or true for a moment only (ADR 20). */
  readonly live?: true;
  /** Stored, but not acknowledged: for events of which so many occur that an acknowledgement each costs too much. */
  readonly unacknowledged?: true;
}

/** The events of one service. All but live ones are kept for an hour, for replay (ADR 20). */
export interface EventsDeclaration {
  readonly service: string;
  readonly events: Readonly<Record<string, EventDeclaration>>;
}

/** Declares an event with a key that is checked against its payload. */
export function defineEvent<S extends z.ZodType>(schema: S, key: (payload: z.output<S>) => string) {
  return { schema, key };
}

/** Declares a live event, with a key that is checked against its payload. */
export function defineLiveEvent<S extends z.ZodType>(schema: S, key: (payload: z.output<S>) => string) {
  return { schema, key, live: true as const };
}

/** Declares the events of a service and keeps their literal types. */
export function defineEvents<const E extends EventsDeclaration>(events: E): E {
  return events;
}

/** A durable work queue: one replica does each job, with retries; a job that is given up becomes a dead letter. */
export interface QueueDeclaration {
  readonly name: string;
  readonly job: z.ZodType;
  /** Waits before each further attempt, in milliseconds; after the last one the job becomes a dead letter. */
  readonly backoffMs: readonly number[];
  /** Longest one attempt may take before another replica may take the job over, in milliseconds. */
  readonly attemptMs: number;
}

/** Declares a work queue and keeps its literal types. */
export function defineQueue<const Q extends QueueDeclaration>(queue: Q): Q {
  return queue;
}

/**
 * A page of a list; `next` is null on the last one. It comes first on the wire, so that `items` can be passed on
 * unparsed (ADR 19).
 */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ next: z.string().nullable(), items: z.array(item) });
}

/** The page of a list that is wanted. `limit` is the most that the caller still wants; the answer may have fewer. */
export const ofPage = { after: z.string().optional(), limit: z.int().min(1).optional() };

/** The error of a list whose `after` is none of its `next`. */
export const cursor_invalid = {
  code: "invalid_argument",
  when: "`after` is not a cursor of this list.",
} as const satisfies ErrorDeclaration;

/** The error of a method that is about one device. */
export const device_not_found = {
  code: "not_found",
  when: "There is no device of that id.",
} as const satisfies ErrorDeclaration;
