import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { type Violation, ViolationList } from "@devmesh/contracts/model/violation";
import { keyNames } from "@devmesh/contracts/principal";
import type { BodyDeclaration, RouteDeclaration } from "@devmesh/contracts/rest/route";
import { ServiceError, violationsOf } from "@devmesh/service-kit/errors";
import type { z } from "zod";
import { checkedBodyOf, declaredErrors } from "../http/declaration.ts";
import type { Exchange } from "../http/exchange.ts";
import { invalidRequest, RequestRefused } from "../http/gateway-errors.ts";
import { parseQuery, type QueryParameters, queryPointer, queryStringOf } from "../http/query-string.ts";
import { readJsonBody } from "../http/request-body.ts";
import type { UnfinishedBodies } from "../http/unfinished-bodies.ts";
import type { Authenticate } from "./authenticate.ts";
import { presentedKey } from "./presented-key.ts";
import type { RateLimit } from "./rate-limit.ts";

export interface CheckOptions {
  readonly authenticate: Authenticate;
  readonly masterRate: RateLimit;
  readonly keyRate: RateLimit;
  /** For requests without a key. */
  readonly addressRate: RateLimit;
  readonly bodies: UnfinishedBodies;
}

/** Checks one request and fills in its exchange; throws the refusal. */
export type CheckRequest = (exchange: Exchange) => Promise<void>;

/**
 * The checks that a route declares, in this order: key, its kind, its rate, path, query, body. A caller without rights
 * learns nothing about the resource.
 */
export function createChecks(route: RouteDeclaration, options: CheckOptions): CheckRequest {
  const checkCaller = callerCheck(route, options);
  const { params, query } = route;
  const body = checkedBodyOf(route);
  const isKnown = knownParameters(route);
  return async (exchange) => {
    const { request } = exchange;
    const parameters = parseQuery(queryStringOf(request.url));
    await checkCaller(exchange, parameters);
    if (params !== undefined) exchange.params = checkParams(route, params, exchange.pathParams);
    const violations: Violation[] = [];
    for (const name in parameters)
      if (!isKnown(name)) violations.push({ pointer: queryPointer(name), detail: "is not known here" });
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

/** Whether a route takes a parameter; each takes `access_token`, also where no key is needed. */
function knownParameters({ query }: RouteDeclaration): (name: string) => boolean {
  if (query?.def.catchall !== undefined) return () => true;
  const known = new Set(["access_token", ...Object.keys(query?.shape ?? {})]);
  return (name) => known.has(name);
}

function callerCheck({ auth, stream }: RouteDeclaration, options: CheckOptions) {
  const { authenticate, masterRate, keyRate, addressRate } = options;
  if (auth === null) {
    return (exchange: Exchange): void => addressRate.take(exchange.address, exchange.headers);
  }
  const needed = auth.map((kind) => keyNames[kind]).join(" or ");
  return async (exchange: Exchange, parameters: QueryParameters): Promise<void> => {
    const key = presentedKey(exchange.request, parameters.access_token);
    if (key === undefined) {
      addressRate.take(exchange.address, exchange.headers);
      throw new RequestRefused("key_missing");
    }
    const found = authenticate(key, exchange);
    const { kind, principal, keyId, authorKeyId, expiresAtMs, name } =
      found instanceof Promise ? await found : found;
    exchange.keyKind = kind;
    const rate = principal.kind === "master" ? masterRate : keyRate;
    rate.take(keyId, exchange.headers);
    exchange.charge = (tokens) => rate.surcharge(keyId, tokens, exchange.headers);
    if (!auth.includes(kind)) {
      throw new RequestRefused("wrong_key_kind", {
        detail: `This route needs a ${needed}; the key is a ${keyNames[kind]}.`,
      });
    }
    exchange.principal = principal;
    exchange.authorKeyId = authorKeyId;
    exchange.keyId = keyId;
    exchange.keyName = name;
    if (!stream) return;
    // Failed attempts of others at the same address must not keep the stream of a revoked key open.
    const { trace, requestId } = exchange;
    const again = { address: `listener ${keyId}`, trace, requestId };
    exchange.caller = { keyId, expiresAtMs, verifyAgain: () => authenticate(key, again) };
  };
}

function checkParams(route: RouteDeclaration, schema: z.ZodType, given: unknown): unknown {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const violations = violationsOf(result.error);
  for (const { pointer } of violations) {
    const reason = route.absent?.[pointer.slice(1)];
    const declared = reason === undefined ? undefined : declaredErrors(route).get(reason);
    if (reason === undefined || declared === undefined) continue;
    throw new ServiceError({ code: declared.code, reason, message: declared.when });
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

/** The parsed value; undefined, with the violations added, where the schema refuses it. */
function parsed(schema: z.ZodType, value: unknown, prefix: string, violations: Violation[]): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  for (const { pointer, detail } of violationsOf(result.error)) {
    violations.push({ pointer: prefix + pointer, detail });
  }
  return undefined;
}
