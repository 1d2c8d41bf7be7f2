import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { Express } from "express";
import { type CheckOptions, type CheckRequest, createChecks } from "../auth/checks.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import type { createEndpoints, Endpoint, PresentProblem } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";
import type { Reply } from "./reply.ts";

/** Answers an exchange that has passed the checks of its route. */
export type RouteHandler = (exchange: Exchange) => Promise<Reply>;

/** What mounting works with. */
export interface MountOptions {
  readonly endpoint: ReturnType<typeof createEndpoints>;
  readonly checks: CheckOptions;
  readonly crossOrigin: CrossOrigin;
  /** How a route's problems look; JSON where it says nothing. */
  readonly present: (route: RouteDeclaration) => PresentProblem | undefined;
}

/**
 * Puts declared routes on an Express application: each path once, with a table of its methods. A known path with
 * another method is `method_not_allowed`.
 */
export function mount(
  app: Express,
  routes: Readonly<Record<string, RouteDeclaration>>,
  handlers: Readonly<Record<string, RouteHandler>>,
  { endpoint, checks, crossOrigin, present }: MountOptions,
): void {
  for (const [path, operations] of byPath(routes)) {
    const table = new Map<string, Endpoint>();
    for (const [operation, route] of operations) {
      const handler = handlers[operation];
      if (handler === undefined) throw new TypeError(`no handler for ${operation}`);
      const serve = endpoint(route.path, checked(createChecks(route, checks), handler), present(route));
      table.set(route.method.toUpperCase(), serve);
      if (route.method === "get") table.set("HEAD", serve);
    }
    mountPath(app, path, table, { endpoint, crossOrigin });
  }
}

/** Puts a page or file that anyone may read on an application, with the same manners as a declared route. */
export function mountPublic(
  app: Express,
  path: string,
  answer: () => Reply,
  { endpoint, crossOrigin }: Pick<MountOptions, "endpoint" | "crossOrigin">,
): void {
  const serve = endpoint(path, answer);
  mountPath(
    app,
    path,
    new Map([
      ["GET", serve],
      ["HEAD", serve],
    ]),
    { endpoint, crossOrigin },
  );
}

/** Puts a path on an application: its methods, preflights where browsers of other origins may call, and no others. */
function mountPath(
  app: Express,
  path: string,
  served: ReadonlyMap<string, Endpoint>,
  { endpoint, crossOrigin }: Pick<MountOptions, "endpoint" | "crossOrigin">,
): void {
  const table = new Map(served);
  const methods = [...table.keys(), ...(crossOrigin.enabled ? ["OPTIONS"] : [])].join(", ");
  if (crossOrigin.enabled)
    table.set(
      "OPTIONS",
      endpoint(path, () => crossOrigin.preflight(methods)),
    );
  const refuse = endpoint(path, () => {
    throw new RequestRefused("method_not_allowed", { headers: { Allow: methods } });
  });
  app.all(path, (request, response) => (table.get(request.method) ?? refuse)(request, response));
}

function checked(check: CheckRequest, handler: RouteHandler): RouteHandler {
  return async (exchange) => {
    await check(exchange);
    return handler(exchange);
  };
}

/** Operations by path, aliases included, in the order of their declaration. */
function byPath(
  routes: Readonly<Record<string, RouteDeclaration>>,
): Map<string, [string, RouteDeclaration][]> {
  const paths = new Map<string, [string, RouteDeclaration][]>();
  for (const [operation, route] of Object.entries(routes)) {
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      const operations = paths.get(path);
      if (operations === undefined) paths.set(path, [[operation, route]]);
      else operations.push([operation, route]);
    }
  }
  return paths;
}
