import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { type Violation, ViolationList } from "@devmesh/contracts/model/violation";
import type { PrincipalKind } from "@devmesh/contracts/principal";
import type { BodyDeclaration, RouteDeclaration } from "@devmesh/contracts/rest/route";
import { ServiceError, violationsOf } from "@devmesh/service-kit/errors";
import type { z } from "zod";
import type { Exchange } from "../http/exchange.ts";
import { invalidRequest, RequestRefused } from "../http/gateway-errors.ts";
import { parseQuery, type QueryParameters, queryStringOf } from "../http/query-string.ts";
import { readJsonBody } from "../http/request-body.ts";
import { checkedBodyOf } from "../http/route-body.ts";
import type { UnfinishedBodies } from "../http/unfinished-bodies.ts";
import type { Authenticate } from "./authenticate.ts";
import { presentedKey } from "./presented-key.ts";
import type { RateLimit } from "./rate-limit.ts";

/** What the checks of a route work with. */
export interface CheckOptions {
  readonly authenticate: Authenticate;
  /** Of one master key. */
  readonly masterRate: RateLimit;
  /** Of one key of any other kind. */
  readonly keyRate: RateLimit;
  /** Of one address without a key. */
  readonly addressRate: RateLimit;
  readonly bodies: UnfinishedBodies;
}

/** Checks one request and fills in its exchange; throws what the caller is refused with. */
export type CheckRequest = (exchange: Exchange) => Promise<void>;

const kindNames: Readonly<Record<PrincipalKind, string>> = {
  master: "master key",
  device_key: "device key",
  public_key: "device public key",
  customer: "customer key",
  device: "device token",
};

/** What a path segment names, for the parameter behind it: a value that nothing can have is not found. */
const absentReasons: Readonly<Record<string, { readonly reason: string; readonly what: string }>> = {
  devices: { reason: "device_not_found", what: "device" },
  keys: { reason: "key_not_found", what: "key" },
  customers: { reason: "customer_not_found", what: "customer" },
  dead: { reason: "mail_not_found", what: "given-up mail" },
  data: { reason: "query_not_found", what: "query" },
};

/**
 * The checks that a route declares, in this order: key, its kind, its rate, path, query, body. A caller without
 * rights learns nothing about what it asked for.
 */
export function createChecks(route: RouteDeclaration, options: CheckOptions): CheckRequest {
  const checkCaller = callerCheck(route, options);
  const { params, query } = route;
  const body = checkedBodyOf(route);
  return async (exchange) => {
    const { request } = exchange;
    const parameters = parseQuery(queryStringOf(request.url));
    await checkCaller(exchange, parameters);
    if (params !== undefined) exchange.params = checkParams(route, params, request.params);
    const violations: Violation[] = [];
    if (query !== undefined) exchange.query = parsed(query, parameters, "/query", violations);
    if (body !== undefined) {
      exchange.receivedBody = await readJsonBody(request, exchange.response, {
        charge: exchange.charge,
        begin: (refuse) => options.bodies.begin(exchange.keyId ?? exchange.address, refuse),
      });
      if (exchange.receivedBody !== undefined) {
        exchange.body = parsedBody(body, exchange.receivedBody, violations);
      } else if (!body.optional) {
        throw new RequestRefused("body_missing");
      }
    }
    if (violations.length > 0) throw invalidRequest(violations);
  };
}

function callerCheck({ auth, stream }: RouteDeclaration, options: CheckOptions) {
  const { authenticate, masterRate, keyRate, addressRate } = options;
  if (auth === null) {
    return (exchange: Exchange): void => addressRate.take(exchange.address, exchange.headers);
  }
  const needed = auth.map((kind) => kindNames[kind]).join(" or ");
  return async (exchange: Exchange, parameters: QueryParameters): Promise<void> => {
    const key = presentedKey(exchange.request, parameters.access_token);
    if (key === undefined) {
      addressRate.take(exchange.address, exchange.headers);
      throw new RequestRefused("key_missing");
    }
    const attempt = {
      address: exchange.address,
      trace: exchange.trace,
      requestId: exchange.requestId,
    };
    const found = authenticate(key, attempt);
    const { principal, keyId, expiresAtMs } = found instanceof Promise ? await found : found;
    exchange.keyKind = principal.kind;
    const rate = principal.kind === "master" ? masterRate : keyRate;
    rate.take(keyId, exchange.headers);
    exchange.charge = (tokens) => rate.surcharge(keyId, tokens, exchange.headers);
    if (!auth.includes(principal.kind)) {
      throw new RequestRefused("wrong_key_kind", {
        detail: `This route needs a ${needed}; the key is a ${kindNames[principal.kind]}.`,
      });
    }
    exchange.principal = principal;
    exchange.keyId = keyId;
    if (!stream) return;
    // Counted apart: failed attempts of strangers at the same address must not keep the stream of a revoked key open.
    const again = { ...attempt, address: `listener ${keyId}` };
    exchange.caller = { keyId, expiresAtMs, verifyAgain: () => authenticate(key, again) };
  };
}

function checkParams(route: RouteDeclaration, schema: z.ZodType, given: unknown): unknown {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const violations = violationsOf(result.error);
  const segments = route.path.split("/");
  for (const { pointer } of violations) {
    const absent = absentReasons[segments[segments.indexOf(`:${pointer.slice(1)}`) - 1] ?? ""];
    if (absent === undefined) continue;
    throw new ServiceError({
      code: "not_found",
      reason: absent.reason,
      message: `There is no such ${absent.what}.`,
    });
  }
  throw invalidRequest(violations.map(({ pointer, detail }) => ({ pointer: `/path${pointer}`, detail })));
}

function parsedBody(
  { schema, checkBesides }: BodyDeclaration,
  value: Json,
  violations: Violation[],
): unknown {
  const body = parsed(schema, value, "", violations);
  if (body === undefined && checkBesides !== undefined && isJsonObject(value)) {
    const found = new ViolationList();
    checkBesides(value, found);
    violations.push(...found.list);
  }
  return body;
}

/** The value as the schema reads it; undefined, with the violations added, where it refuses the value. */
function parsed(schema: z.ZodType, value: unknown, prefix: string, violations: Violation[]): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  for (const { pointer, detail } of violationsOf(result.error)) {
    violations.push({ pointer: prefix + pointer, detail });
  }
  return undefined;
}
