import { STATUS_CODES } from "node:http";
import { Violation } from "@devmesh/contracts/model/violation";
import type { Problem } from "@devmesh/contracts/rest/problem";
import { ServiceError } from "@devmesh/service-kit/errors";
import { z } from "zod";
import { firstOf, gatewayErrors, RequestRefused } from "./gateway-errors.ts";
import { httpStatus, retryAfterOf, violationOf } from "./http-status.ts";

/** The page that explains the reasons; begins a problem's `type`. */
export const errorReferencePath = "/docs/errors";

export interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly problem: Problem;
}

/**
 * The answer to any error. Only errors that a contract declares and refusals of the gateway reach the caller; anything
 * else is `internal` without details (api.md, Conventions).
 */
export function problemOf(error: unknown, requestId: string): ProblemAnswer {
  return error instanceof RequestRefused
    ? refusalProblem(error, requestId)
    : serviceProblem(ServiceError.from(error), requestId);
}

function refusalProblem(refusal: RequestRefused, requestId: string): ProblemAnswer {
  const { status } = gatewayErrors[refusal.reason];
  const problem = newProblem({ status, reason: refusal.reason, detail: refusal.message, requestId });
  if (refusal.violations !== undefined)
    problem.errors = refusal.violations.map((violation) => ({ ...violation }));
  return { status, headers: { ...headersOf(status), ...refusal.headers }, problem };
}

function serviceProblem(error: ServiceError, requestId: string): ProblemAnswer {
  const status = httpStatus(error.code, error.reason);
  const refused = NotWritable.safeParse(error.details);
  const violations = refused.success
    ? refused.data.pointers.map(notWritable)
    : (violationsIn(error.details) ?? violationOf(error.reason));
  const message = messageOf(error);
  const first = violations === undefined ? undefined : firstOf(violations);
  const detail = first === undefined ? message : `${message} ${first}`;
  const problem = newProblem({ status, reason: error.reason, detail, requestId });
  if (violations !== undefined) problem.errors = violations;
  if (refused.success) problem.pointers = refused.data.pointers;
  if (error.service !== undefined) problem.service = error.service;
  if (error.reason === "device_error") {
    const said = DeviceError.safeParse(error.details);
    if (said.success) problem.error = said.data;
  }
  const retryAfter = retryAfterOf(error.code, error.reason);
  const headers = {
    ...headersOf(status),
    ...(retryAfter !== undefined && { "Retry-After": String(retryAfter) }),
  };
  return { status, headers, problem };
}

function messageOf({ reason, service, message }: ServiceError): string {
  if (reason === "internal") return "The service failed in an unforeseen way.";
  return service === undefined ? message : `\`${service}\`: ${message}`;
}

function violationsIn(details: unknown) {
  const violations = Violations.safeParse(details);
  return violations.success ? violations.data : undefined;
}

function notWritable(pointer: string) {
  return { pointer, detail: "is not writable with this key" };
}

interface ProblemOptions {
  readonly status: number;
  readonly reason: string;
  readonly detail: string;
  readonly requestId: string;
}

/** A problem of nothing but what each has. */
export function newProblem({ status, reason, detail, requestId }: ProblemOptions): Problem {
  return {
    type: `${errorReferencePath}#${reason}`,
    title: STATUS_CODES[status] ?? "Error",
    status,
    detail,
    reason,
    request_id: requestId,
    error: { code: status, message: detail },
  };
}

function headersOf(status: number): Readonly<Record<string, string>> {
  return status === 401 ? { "WWW-Authenticate": "Bearer" } : {};
}

const Violations = z.array(Violation);
const NotWritable = z.object({ pointers: z.array(z.string()) });
const DeviceError = z.object({ code: z.int(), message: z.string() });
