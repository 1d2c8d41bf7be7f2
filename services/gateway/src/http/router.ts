import type { ServerResponse } from "node:http";
import type { ChangedKind } from "@devmesh/contracts/model/mesh-change";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { Request } from "express";
import type { CrossOrigin } from "./cross-origin.ts";
import type { createEndpoints, Endpoint, PresentProblem } from "./endpoint.ts";
import type { Exchange, PathParams, Reply } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";

/** Answers an exchange that has passed the checks of its route. */
export type RouteHandler = (exchange: Exchange) => Promise<Reply>;

/** Serves all methods of a path. */
export type PathHandler = (request: Request, response: ServerResponse, params?: PathParams) => void;

/** Puts a path into a router. */
export type AddPath = (path: string, handler: PathHandler) => void;

/** A route that changes something. */
export interface ChangingRoute {
  readonly operation: string;
  readonly change: ChangedKind;
}

export interface MountOptions {
  readonly endpoint: ReturnType<typeof createEndpoints>;
  /** For what no route declares; it costs the address a token. */
  readonly publicEndpoint: ReturnType<typeof createEndpoints>;
  /** The check of a route's requests: it fills in the exchange, or throws the refusal. */
  readonly checkOf: (route: RouteDeclaration) => (exchange: Exchange) => Promise<void>;
  readonly crossOrigin: CrossOrigin;
  /** Presentation of a route's problems; JSON by default. */
  readonly present: (route: RouteDeclaration) => PresentProblem | undefined;
  /** Called after a request that has changed something, before its answer. */
  readonly onChange: (route: ChangingRoute, exchange: Exchange, reply: Reply) => void;
}

/** Mounts declared routes: each path once, with a table of its methods. Other methods are `method_not_allowed`. */
export function mount(
  add: AddPath,
  routes: Readonly<Record<string, RouteDeclaration>>,
  handlers: Readonly<Record<string, RouteHandler>>,
  { endpoint, publicEndpoint, checkOf, crossOrigin, present, onChange }: MountOptions,
): void {
  for (const [path, operations] of byPath(routes)) {
    const table: Record<string, Endpoint> = {};
    for (const { operation, route } of operations) {
      const handler = handlers[operation];
      if (handler === undefined) throw new TypeError(`no handler for ${operation}`);
      const check = checkOf(route);
      const answer = async (exchange: Exchange) => {
        await check(exchange);
        const reply = await handler(exchange);
        if (route.change) onChange({ operation, change: route.change }, exchange, reply);
        return reply;
      };
      const serve = endpoint(route.path, answer, present(route));
      table[route.method.toUpperCase()] = serve;
      if (route.method === "get") table.HEAD = serve;
    }
    mountPath(add, path, table, { publicEndpoint, crossOrigin });
  }
}

/** Mounts a public page or file, with HEAD, CORS and 405 as for a declared route. */
export function mountPublic(
  add: AddPath,
  path: string,
  answer: (exchange: Exchange) => Reply,
  { publicEndpoint, crossOrigin }: Pick<MountOptions, "publicEndpoint" | "crossOrigin">,
): void {
  const serve = publicEndpoint(path, answer);
  mountPath(add, path, { GET: serve, HEAD: serve }, { publicEndpoint, crossOrigin });
}

function mountPath(
  add: AddPath,
  path: string,
  served: Readonly<Record<string, Endpoint>>,
  { publicEndpoint, crossOrigin }: Pick<MountOptions, "publicEndpoint" | "crossOrigin">,
): void {
  const table = new Map(Object.entries(served));
  const methods = [...table.keys(), ...(crossOrigin.enabled ? ["OPTIONS"] : [])].join(", ");
  if (crossOrigin.enabled)
    table.set(
      "OPTIONS",
      publicEndpoint(path, () => crossOrigin.preflight(methods)),
    );
  const refuse = publicEndpoint(path, () => {
    throw new RequestRefused("method_not_allowed", { headers: { Allow: methods } });
  });
  add(path, (request, response, params) => (table.get(request.method) ?? refuse)(request, response, params));
}

/** Operations by path, aliases included, in the order of their declaration. */
function byPath(routes: Readonly<Record<string, RouteDeclaration>>) {
  const mounted = Object.entries(routes).flatMap(([operation, route]) =>
    [route.path, ...(route.aliases ?? [])].map((path) => ({ path, operation, route })),
  );
  return Map.groupBy(mounted, ({ path }) => path);
}

interface Branch<T> {
  readonly literals: Map<string, Branch<T>>;
  parameter?: { readonly name: string; readonly rest: Branch<T> };
  value?: T;
}

interface Found<T> {
  readonly value: T;
  readonly params: PathParams;
}

/**
 * Values by route pattern, such as `/devices/:id`. The router of Express tries pattern after pattern, which takes an
 * eighth of the time of a request. Paths mean the same as there: case counts, one slash at the end does not.
 */
export class RouteTable<T> {
  readonly #root: Branch<T> = { literals: new Map() };

  add(pattern: string, value: T): void {
    let branch = this.#root;
    for (const part of pattern.slice(1).split("/"))
      branch = part.startsWith(":") ? parameter(branch, part.slice(1)) : literal(branch, part);
    branch.value = value;
  }

  /** The value of the pattern that a request target matches; undefined without one. Throws `path_malformed`. */
  find(target: string): Found<T> | undefined {
    const parts = pathOf(target).slice(1).split("/");
    if (parts.length > 1 && parts.at(-1) === "") parts.pop();
    const params: Record<string, string> = {};
    const value = follow(this.#root, parts, 0, params);
    return value === undefined ? undefined : { value, params };
  }
}

function literal<T>({ literals }: Branch<T>, part: string): Branch<T> {
  const next = literals.get(part) ?? { literals: new Map() };
  literals.set(part, next);
  return next;
}

function parameter<T>(branch: Branch<T>, name: string): Branch<T> {
  branch.parameter ??= { name, rest: { literals: new Map() } };
  if (branch.parameter.name !== name) throw new TypeError(`:${name} is already :${branch.parameter.name}`);
  return branch.parameter.rest;
}

/** A literal wins over a parameter. */
function follow<T>(
  branch: Branch<T>,
  parts: readonly string[],
  at: number,
  params: Record<string, string>,
): T | undefined {
  const part = parts[at];
  if (part === undefined) return branch.value;
  const next = branch.literals.get(part);
  const value = next && follow(next, parts, at + 1, params);
  if (value !== undefined || branch.parameter === undefined || part === "") return value;
  const { name, rest } = branch.parameter;
  const found = follow(rest, parts, at + 1, params);
  if (found !== undefined) params[name] = decoded(part);
  return found;
}

function decoded(part: string): string {
  try {
    return part.includes("%") ? decodeURIComponent(part) : part;
  } catch (cause) {
    throw new RequestRefused("path_malformed", { cause });
  }
}

/** The path of a request target, which may be a whole URL (RFC 9112, 3.2.2). */
function pathOf(target: string): string {
  if (!target.startsWith("/")) return URL.parse(target)?.pathname ?? "";
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}
