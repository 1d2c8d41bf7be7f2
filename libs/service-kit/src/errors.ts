import { type Code, type ErrorDeclaration, statusOfCode, WireError } from "@devmesh/contracts/contract";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { Violation, ViolationList } from "@devmesh/contracts/model/violation";
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import { z } from "zod";

/** The errors that any call may end with, besides those its method declares. */
export const kitErrors = {
  invalid_request: {
    code: "invalid_argument",
    when: "The input does not match the schema of the method; each violation is listed.",
    details: z.array(Violation),
  },
  deadline_exceeded: {
    code: "deadline_exceeded",
    when: "A service gave no answer in time; `service` names it.",
  },
  unavailable: {
    code: "unavailable",
    when: "No replica of the service can be reached, it is shutting down, or its store cannot serve now.",
  },
  internal: { code: "internal", when: "The service failed in a way its contract does not foresee." },
} as const satisfies Readonly<Record<string, ErrorDeclaration>>;

/** A reason the kit itself raises. */
export type KitReason = keyof typeof kitErrors;

/** What a `ServiceError` is made from. */
export interface ServiceErrorOptions {
  readonly code: Code;
  readonly reason: string;
  /** One sentence; travels with declared errors. Must hold no secret. */
  readonly message?: string;
  /** Travels with declared errors; must match the declaration's schema. */
  readonly details?: unknown;
  /** The service that cannot serve, or gave no answer in time. Travels with the error through all callers. */
  readonly service?: string;
  /** What led to it: for the log of this process, never sent. */
  readonly cause?: unknown;
}

/** The one error that crosses a service's border: a code of the closed set and the method's reason (ADR 4). */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: Code;
  readonly reason: string;
  readonly details?: unknown;
  readonly service?: string;

  constructor({ code, reason, message, details, service, cause }: ServiceErrorOptions) {
    super(message ?? reason, cause === undefined ? undefined : { cause });
    this.code = code;
    this.reason = reason;
    if (details !== undefined) this.details = details;
    if (service !== undefined) this.service = service;
  }

  /** An error the kit itself raises, with its declared code and sentence. */
  static of(
    reason: KitReason,
    options: Pick<ServiceErrorOptions, "details" | "service" | "cause"> = {},
  ): ServiceError {
    const { code, when } = kitErrors[reason];
    return new ServiceError({ code, reason, message: when, ...options });
  }

  /** Itself when it is one; anything else becomes `internal` with the original as cause. */
  static from(error: unknown): ServiceError {
    return error instanceof ServiceError ? error : ServiceError.of("internal", { cause: error });
  }
}

/** Whether `error` is a `ServiceError` with one of these reasons. */
export function isReason<const R extends string>(
  error: unknown,
  ...reasons: readonly R[]
): error is ServiceError & { readonly reason: R } {
  return error instanceof ServiceError && (reasons as readonly string[]).includes(error.reason);
}

/** Header of ADR-32 that holds an HTTP-like number. Its presence marks a reply as an error. */
export const errorCodeHeader = "Nats-Service-Error-Code";
/** Header of ADR-32 that holds the reason. */
export const errorReasonHeader = "Nats-Service-Error";

/** An error as it is sent. */
export interface EncodedError {
  readonly headers: MsgHdrs;
  readonly body: string;
}

/** The error that may leave the service: declared by the method or the kit; everything else becomes `internal`. */
export function sendableError(
  error: ServiceError,
  declared: Readonly<Record<string, ErrorDeclaration>>,
): ServiceError {
  const declaration = declarationOf(error.reason, declared);
  if (declaration === undefined || declaration.code !== error.code || error.reason === "internal") {
    return error.reason === "internal" ? error : ServiceError.of("internal", { cause: error });
  }
  if (declaration.details === undefined) return error;
  const details = declaration.details.safeParse(error.details);
  return details.success ? error : ServiceError.of("internal", { cause: details.error });
}

/** Encodes an error after ADR-32. Give it only what `sendableError` returned. */
export function encodeError(error: ServiceError): EncodedError {
  const wire = headers();
  wire.set(errorCodeHeader, String(statusOfCode[error.code]));
  wire.set(errorReasonHeader, error.reason);
  return { headers: wire, body: JSON.stringify(describeError(error)) };
}

/** An error as a member of an answer. Give it only what `sendableError` returned. */
export function describeError({ code, reason, message, details, service }: ServiceError): WireError {
  return { code, reason, message: reason === "internal" ? undefined : message, details, service };
}

/**
 * Rebuilds the error of a reply of `service`; one that the method does not declare is `internal`, as is an unreadable
 * one.
 */
export function decodeError(
  body: string,
  service: string,
  declared: Readonly<Record<string, ErrorDeclaration>>,
): ServiceError {
  try {
    return restoreError(WireError.parse(JSON.parse(body)), service, declared);
  } catch (cause) {
    return ServiceError.of("internal", { cause });
  }
}

/** Rebuilds the error that a member of an answer of `service` describes, as {@link decodeError} does. */
export function restoreError(
  wire: WireError,
  service: string,
  declared: Readonly<Record<string, ErrorDeclaration>>,
): ServiceError {
  const declaration = declarationOf(wire.reason, declared);
  if (declaration === undefined || declaration.code !== wire.code) {
    return ServiceError.of("internal", {
      cause: new Error(`undeclared remote error ${wire.code}/${wire.reason}`),
    });
  }
  const details = declaration.details?.safeParse(wire.details);
  if (details?.success === false) return ServiceError.of("internal", { cause: details.error });
  return new ServiceError({
    code: declaration.code,
    reason: wire.reason,
    message: wire.message ?? declaration.when,
    ...(details === undefined ? {} : { details: details.data }),
    ...((wire.code === "unavailable" || wire.reason === "deadline_exceeded") && {
      service: wire.service ?? service,
    }),
  });
}

function declarationOf(
  reason: string,
  declared: Readonly<Record<string, ErrorDeclaration>>,
): ErrorDeclaration | undefined {
  if (Object.hasOwn(declared, reason)) return declared[reason];
  return Object.hasOwn(kitErrors, reason) ? kitErrors[reason as KitReason] : undefined;
}

const typesInWords: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

// zod's own words for these are about JavaScript: "expected string, received undefined".
z.config({
  customError: ({ code, input, expected }) => {
    if (code !== "invalid_type") return undefined;
    if (input === undefined) return "is required";
    const type = typesInWords[String(expected)];
    return type === undefined ? undefined : `must be ${type}`;
  },
});

/** The violations a schema found, as JSON pointers; bounded as a {@link ViolationList} is. */
export function violationsOf(error: z.ZodError): Violation[] {
  const violations = new ViolationList();
  for (const issue of error.issues) {
    const unknown = issue.code === "unrecognized_keys" ? issue.keys : undefined;
    if (unknown === undefined) violations.add(pointerTo(issue.path), issue.message);
    for (const key of unknown ?? []) {
      if (violations.full) break;
      violations.add(pointerTo([...issue.path, key]), "is not known here");
    }
    if (violations.full) break;
  }
  return violations.list;
}

function pointerTo(path: readonly PropertyKey[]): string {
  return path.map(pointerToken).join("");
}
