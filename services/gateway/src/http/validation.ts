import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { type Violation, ViolationList } from "@devmesh/contracts/model/violation";
import {
  type BodyDeclaration,
  checkedBodyOf,
  declaredErrors,
  type RouteDeclaration,
} from "@devmesh/contracts/rest/route";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError, violationsOf } from "@devmesh/service-kit/errors";
import type { z } from "zod";
import type { Exchange } from "./exchange.ts";
import { invalidRequest, RequestRefused } from "./gateway-errors.ts";
import { readJsonBody } from "./request-body.ts";
import { findRedacted } from "./session-reply.ts";
import type { UnfinishedBodies } from "./unfinished-bodies.ts";
import { openUpload } from "./upload.ts";

export interface CheckOptions {
  /** Runs first: a caller without rights learns nothing about the resource. */
  readonly checkCaller: (exchange: Exchange, accessToken: string | undefined) => void | Promise<void>;
  readonly bodies: UnfinishedBodies;
  readonly clock: Clock;
}

/** Checks one request and fills in its exchange; throws the refusal. */
export type CheckRequest = (exchange: Exchange) => Promise<void>;

/** The checks of a route's requests in this order: caller, path, query, body, cost. */
export function createChecks(
  route: RouteDeclaration,
  { checkCaller, bodies, clock }: CheckOptions,
): CheckRequest {
  const { params, query, upload, cost } = route;
  const body = checkedBodyOf(route);
  const isKnown = knownParameters(route);
  return async (exchange) => {
    const { request } = exchange;
    const parameters = queryOf(request.url, route.withoutBlanks);
    await checkCaller(exchange, parameters.access_token);
    if (params !== undefined) exchange.params = checkParams(route, params, exchange.pathParams);
    const violations: Violation[] = [];
    for (const name in parameters)
      if (!isKnown(name)) violations.push({ pointer: queryPointer(name), detail: "is not known here" });
    if (query !== undefined) exchange.query = parsed(query, parameters, "/query", violations);
    if (body !== undefined) {
      exchange.receivedBody = await readJsonBody(request, exchange.response, {
        charge: exchange.charge,
        membersOnce: body.membersOnce === true,
        begin: (refuse) => bodies.begin(exchange.keyId ?? exchange.address, refuse),
      });
      if (exchange.receivedBody !== undefined) {
        if (exchange.keyKind === "session") findRedacted(exchange.receivedBody, violations);
        exchange.body = parsedBody(body, exchange.receivedBody, violations);
      } else if (!body.optional) {
        throw new RequestRefused("body_missing");
      }
    }
    if (upload !== undefined)
      exchange.upload = openUpload(request, exchange.response, { type: upload.type, clock });
    if (violations.length > 0) throw invalidRequest(violations);
    if (cost?.applies(exchange.query as Readonly<Record<string, unknown>>)) exchange.charge(cost.tokens);
  };
}

/** Whether a route takes a parameter; each takes `access_token`, also where no key is needed. */
function knownParameters({ query }: RouteDeclaration): (name: string) => boolean {
  if (query?.def.catchall !== undefined) return () => true;
  const known = new Set(["access_token", ...Object.keys(query?.shape ?? {})]);
  return (name) => known.has(name);
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

type QueryParameters = Readonly<Record<string, string>>;

const none: QueryParameters = Object.freeze(Object.create(null));

/**
 * The query of a request target as `application/x-www-form-urlencoded`. Throws `invalid_request` for a parameter given
 * twice or not in UTF-8. A `+` within those `withoutBlanks` is itself.
 */
export function queryOf(target: string, withoutBlanks: readonly string[] = []): QueryParameters {
  const mark = target.indexOf("?");
  const text = mark < 0 ? "" : target.slice(mark + 1);
  if (text === "") return none;
  const parameters: Record<string, string> = Object.create(null);
  const violations: Violation[] = [];
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const given = equals < 0 ? "" : pair.slice(equals + 1);
    const value = decode(name !== undefined && withoutBlanks.includes(name) ? withPluses(given) : given);
    if (name === undefined) violations.push({ pointer: "/query", detail: "holds a name that is not UTF-8" });
    else if (value === undefined) violations.push({ pointer: queryPointer(name), detail: "must be UTF-8" });
    else if (name in parameters)
      violations.push({ pointer: queryPointer(name), detail: "must be given once" });
    else parameters[name] = value;
  }
  if (violations.length > 0) throw invalidRequest(violations);
  return parameters;
}

/** Pointer to a query parameter in a problem. */
function queryPointer(name: string): string {
  return `/query${pointerToken(name)}`;
}

/** A value whose `+` means itself, but around it, where a form sends typed blanks so. */
function withPluses(text: string): string {
  return text.replaceAll("+", " ").trim().replaceAll(" ", "%2B");
}

function decode(text: string): string | undefined {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
