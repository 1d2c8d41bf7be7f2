import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { Express } from "express";
import { type CheckOptions, createChecks } from "../auth/checks.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import type { createEndpoints, Endpoint, PresentProblem } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";
import type { Reply } from "./reply.ts";

/** Answers an exchange that has passed the checks of its route. */
export type RouteHandler = (exchange: Exchange) => Promise<Reply>;

export interface MountOptions {
  readonly endpoint: ReturnType<typeof createEndpoints>;
  readonly checks: CheckOptions;
  readonly crossOrigin: CrossOrigin;
  /** Presentation of a route's problems; JSON by default. */
  readonly present: (route: RouteDeclaration) => PresentProblem | undefined;
}

/** Mounts declared routes: each path once, with a table of its methods. Other methods are `method_not_allowed`. */
export function mount(
  app: Express,
  routes: Readonly<Record<string, RouteDeclaration>>,
  handlers: Readonly<Record<string, RouteHandler>>,
  { endpoint, checks, crossOrigin, present }: MountOptions,
): void {
  for (const [path, operations] of byPath(routes)) {
    const table: Record<string, Endpoint> = {};
    for (const { operation, route } of operations) {
      const handler = handlers[operation];
      if (handler === undefined) throw new TypeError(`no handler for ${operation}`);
      const check = createChecks(route, checks);
      const answer = async (exchange: Exchange) => {
        await check(exchange);
        return handler(exchange);
      };
      const serve = endpoint(route.path, answer, present(route));
      table[route.method.toUpperCase()] = serve;
      if (route.method === "get") table.HEAD = serve;
    }
    mountPath(app, path, table, { endpoint, crossOrigin });
  }
}

/** Mounts a public page or file, with HEAD, CORS and 405 as for a declared route. */
export function mountPublic(
  app: Express,
  path: string,
  answer: () => Reply,
  { endpoint, crossOrigin }: Pick<MountOptions, "endpoint" | "crossOrigin">,
): void {
  const serve = endpoint(path, answer);
  mountPath(app, path, { GET: serve, HEAD: serve }, { endpoint, crossOrigin });
}

function mountPath(
  app: Express,
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
  app.all(path, (request, response) => (table.get(request.method) ?? refuse)(request, response));
}

/** Operations by path, aliases included, in the order of their declaration. */
function byPath(routes: Readonly<Record<string, RouteDeclaration>>) {
  const mounted = Object.entries(routes).flatMap(([operation, route]) =>
    [route.path, ...(route.aliases ?? [])].map((path) => ({ path, operation, route })),
  );
  return Map.groupBy(mounted, ({ path }) => path);
}
