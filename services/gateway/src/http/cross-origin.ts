import type { Exchange } from "./exchange.ts";
import type { Reply } from "./reply.ts";

const exposedHeaders =
  "ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id";
const allowedRequestHeaders =
  "Authorization, Content-Type, If-Match, Last-Event-ID, X-Request-Id, traceparent";

/** How browsers of other origins may call (CORS, off unless `CORS_ORIGINS` names some). */
export interface CrossOrigin {
  readonly enabled: boolean;
  /** Writes the headers that let a page of the request's origin read the answer, if it may. */
  allow(exchange: Exchange): void;
  /** The answer to a preflight for a path with these methods. */
  preflight(methods: string): Reply;
}

/** Rules for a list of origins; `*` stands for all. Keys are sent by the page itself, so cookies are never allowed. */
export function createCrossOrigin(origins: readonly string[]): CrossOrigin {
  const any = origins.includes("*");
  const known = new Set(origins);
  const enabled = origins.length > 0;
  return {
    enabled,
    allow({ request, headers }) {
      if (!enabled) return;
      if (!any) headers.Vary = "Origin";
      const { origin } = request.headers;
      if (origin === undefined || !(any || known.has(origin))) return;
      headers["Access-Control-Allow-Origin"] = any ? "*" : origin;
      headers["Access-Control-Expose-Headers"] = exposedHeaders;
    },
    preflight: (methods) => ({
      status: 204,
      headers: {
        Allow: methods,
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": allowedRequestHeaders,
        "Access-Control-Max-Age": "600",
      },
    }),
  };
}
