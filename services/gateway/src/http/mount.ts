import type { ServerResponse } from "node:http";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { Request } from "express";
import { type CheckOptions, createChecks } from "../auth/checks.ts";
import type { ChangingRoute } from "../changes/change-of.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import type { createEndpoints, Endpoint, PresentProblem } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";
import type { Reply } from "./reply.ts";
import type { PathParams } from "./route-table.ts";

/** Answers an exchange that has passed the checks of its route. */
export type RouteHandler = (exchange: Exchange) => Promise<Reply>;

/** Serves all methods of a path. */
export type PathHandler = (request: Request, response: ServerResponse, params?: PathParams) => void;

/** Puts a path into a router. */
export type AddPath = (path: string, handler: PathHandler) => void;

export interface MountOptions {
  readonly endpoint: ReturnType<typeof createEndpoints>;
  readonly checks: CheckOptions;
  readonly crossOrigin: CrossOrigin;
  /** Presentation of a route's problems; JSON by default. */
  readonly present: (route: RouteDeclaration) => PresentProblem | undefined;
  /** Called after a request that has changed something, before its answer. */
  readonly onChange: (made: ChangingRoute, exchange: Exchange, reply: Reply) => void;
}

/** Mounts declared routes: each path once, with a table of its methods. Other methods are `method_not_allowed`. */
export function mount(
  add: AddPath,
  routes: Readonly<Record<string, RouteDeclaration>>,
  handlers: Readonly<Record<string, RouteHandler>>,
  { endpoint, checks, crossOrigin, present, onChange }: MountOptions,
): void {
  for (const [path, operations] of byPath(routes)) {
    const table: Record<string, Endpoint> = {};
    for (const { operation, route } of operations) {
      const handler = handlers[operation];
      if (handler === undefined) throw new TypeError(`no handler for ${operation}`);
      const check = createChecks(route, checks);
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
    mountPath(add, path, table, { endpoint, crossOrigin });
  }
}

/** Mounts a public page or file, with HEAD, CORS and 405 as for a declared route. */
export function mountPublic(
  add: AddPath,
  path: string,
  answer: () => Reply,
  { endpoint, crossOrigin }: Pick<MountOptions, "endpoint" | "crossOrigin">,
): void {
  const serve = endpoint(path, answer);
  mountPath(add, path, { GET: serve, HEAD: serve }, { endpoint, crossOrigin });
}

function mountPath(
  add: AddPath,
  path: string,
  served: Readonly<Record<string, Endpoint>>,
  { endpoint, crossOrigin }: Pick<MountOptions, "endpoint" | "crossOrigin">,
): void {
  const table = new Map(Object.entries(served));
  const methods = [...table.keys(), ...(crossOrigin.enabled ? ["OPTIONS"] : [])].join(", ");
  if (crossOrigin.enabled)
    table.set(
      "OPTIONS",
      endpoint(path, () => crossOrigin.preflight(methods)),
    );
  const refuse = endpoint(path, () => {
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
