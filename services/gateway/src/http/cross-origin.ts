import type { Request } from "express";
import type { Reply } from "./exchange.ts";

const exposedHeaders =
  "ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id";
const allowedRequestHeaders =
  "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, X-Request-Id, traceparent";

/** CORS; off unless `CORS_ORIGINS` names origins. */
export type CrossOrigin = ReturnType<typeof createCrossOrigin>;

/** `*` allows all origins. Keys are sent by the page itself, so credentials of the browser are never allowed. */
export function createCrossOrigin(origins: readonly string[]) {
  const any = origins.includes("*");
  const enabled = origins.length > 0;
  return {
    enabled,
    /** Adds the headers that let a page of an allowed origin read the answer. */
    allow(request: Pick<Request, "headers">, headers: Record<string, string>): void {
      if (!enabled) return;
      if (!any) headers.Vary = "Origin";
      const { origin } = request.headers;
      if (origin === undefined || !(any || origins.includes(origin))) return;
      headers["Access-Control-Allow-Origin"] = any ? "*" : origin;
      headers["Access-Control-Expose-Headers"] = exposedHeaders;
    },
    /** Answers a preflight for a path with these methods. */
    preflight: (methods: string): Reply => ({
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
