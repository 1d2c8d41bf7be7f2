import type { ErrorDeclaration } from "@devmesh/contracts/contract";
import { key_invalid } from "@devmesh/contracts/keys";
import { api } from "@devmesh/contracts/rest/api";
import { checkedBodyOf, declaredErrors, type RouteDeclaration } from "@devmesh/contracts/rest/route";
import { kitErrors } from "@devmesh/service-kit/errors";
import { gatewayErrors } from "../http/gateway-errors.ts";
import { httpStatus } from "../http/http-status.ts";

export interface ErrorEntry {
  readonly reason: string;
  /** Code between services; null for what the gateway refuses itself. */
  readonly code: string | null;
  readonly status: number;
  readonly when: string;
  /** Operations whose calls declare it; empty for any operation. */
  readonly operations: readonly string[];
}

/** The gateway's own refusals that a route can answer. */
export function gatewayReasons(route: RouteDeclaration): (keyof typeof gatewayErrors)[] {
  const reasons: (keyof typeof gatewayErrors)[] = ["invalid_request", "rate_limited", "header_too_large"];
  if (route.auth !== null) reasons.push("key_missing", "key_ambiguous", "wrong_key_kind", "too_many_answers");
  const body = checkedBodyOf(route);
  if (body !== undefined) {
    reasons.push("body_malformed", "body_too_large", "unsupported_media_type", "request_incomplete");
    if (!body.optional) reasons.push("body_missing");
  }
  if (route.upload !== undefined)
    reasons.push("unsupported_media_type", "request_incomplete", "too_many_uploads");
  if (route.secretPath) reasons.push("too_many_downloads");
  if (route.ranges) reasons.push("range_not_satisfiable");
  if (route.stream === true) reasons.push("not_acceptable", "handshake_invalid");
  if (route.stream !== undefined) reasons.push("too_many_listeners");
  return reasons;
}

/** Every reason of the public API, in alphabetical order. */
export function errorReference(): readonly ErrorEntry[] {
  const entries = new Map<string, ErrorEntry>();
  const add = (reason: string, { code, when }: ErrorDeclaration, operations: readonly string[]) =>
    entries.set(reason, { reason, code, status: httpStatus(code, reason), when, operations });
  for (const [operation, route] of Object.entries(api)) {
    for (const [reason, declaration] of declaredErrors(route))
      add(reason, declaration, [...(entries.get(reason)?.operations ?? []), operation]);
  }
  add("key_invalid", key_invalid, []);
  for (const [reason, declaration] of Object.entries(kitErrors)) add(reason, declaration, []);
  for (const [reason, { status, when }] of Object.entries(gatewayErrors)) {
    entries.set(reason, { reason, code: null, status, when, operations: [] });
  }
  return [...entries.values()].sort((one, other) => (one.reason < other.reason ? -1 : 1));
}
