import { key_invalid } from "@devmesh/contracts/keys";
import { api } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { kitErrors } from "@devmesh/service-kit/errors";
import { gatewayErrors } from "../http/gateway-errors.ts";
import { httpStatus } from "../http/http-status.ts";
import { checkedBodyOf } from "../http/route-body.ts";

/** One reason that an error of the public API can have. */
export interface ErrorEntry {
  readonly reason: string;
  /** Code between services; null for what the gateway refuses itself. */
  readonly code: string | null;
  readonly status: number;
  readonly when: string;
  /** Operations whose calls declare it; empty for what any operation can answer. */
  readonly operations: readonly string[];
}

/** The errors that the services behind a route declare, by reason. */
export function declaredErrors(route: RouteDeclaration): Map<string, ErrorEntry> {
  const found = new Map<string, ErrorEntry>();
  for (const { contract, methods } of route.calls) {
    for (const method of methods) {
      for (const [reason, { code, when }] of Object.entries(contract.methods[method]?.errors ?? {})) {
        found.set(reason, { reason, code, status: httpStatus(code, reason), when, operations: [] });
      }
    }
  }
  return found;
}

/** The gateway's own refusals that a route can answer; what no route is reached by is left out. */
export function gatewayReasons(route: RouteDeclaration): (keyof typeof gatewayErrors)[] {
  const reasons: (keyof typeof gatewayErrors)[] = ["invalid_request", "rate_limited", "header_too_large"];
  if (route.auth !== null) reasons.push("key_missing", "key_ambiguous", "wrong_key_kind", "too_many_answers");
  const body = checkedBodyOf(route);
  if (body !== undefined) {
    reasons.push("body_malformed", "body_too_large", "unsupported_media_type", "request_incomplete");
    if (!body.optional) reasons.push("body_missing");
  }
  if (route.stream === true) reasons.push("not_acceptable", "handshake_invalid");
  if (route.stream !== undefined) reasons.push("too_many_listeners");
  return reasons;
}

/** Every reason of the public API, in alphabetical order. */
export function errorReference(): readonly ErrorEntry[] {
  const entries = new Map<string, ErrorEntry>();
  for (const [operation, route] of Object.entries(api)) {
    for (const [reason, entry] of declaredErrors(route)) {
      const operations = [...(entries.get(reason)?.operations ?? []), operation];
      entries.set(reason, { ...entry, operations });
    }
  }
  const { code, when } = key_invalid;
  entries.set("key_invalid", {
    reason: "key_invalid",
    code,
    status: httpStatus(code, "key_invalid"),
    when,
    operations: [],
  });
  for (const [reason, { code, when }] of Object.entries(kitErrors)) {
    entries.set(reason, { reason, code, status: httpStatus(code, reason), when, operations: [] });
  }
  for (const [reason, { status, when }] of Object.entries(gatewayErrors)) {
    entries.set(reason, { reason, code: null, status, when, operations: [] });
  }
  return [...entries.values()].sort((one, other) => (one.reason < other.reason ? -1 : 1));
}
