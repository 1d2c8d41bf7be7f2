import { api, type Operation } from "@devmesh/contracts/rest/api";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import { createAuthentication } from "../auth/authenticate.ts";
import type { KeyCache } from "../auth/key-cache.ts";
import type { PermissionCache } from "../auth/permission-cache.ts";
import { RateLimit } from "../auth/rate-limit.ts";
import { mountDashboard } from "../dashboard/dashboard.ts";
import { followDashboard } from "../dashboard/dashboard-build.ts";
import type { GatewayEnv } from "../env.ts";
import type { OpenStream } from "../notifications/open-stream.ts";
import { mountReference } from "../reference/reference-pages.ts";
import { presentationOf } from "../routes/confirmation-page.ts";
import { customerHandlers } from "../routes/customer.ts";
import { deviceHandlers } from "../routes/device.ts";
import { masterKeyHandlers } from "../routes/master-key.ts";
import { meshHandlers } from "../routes/mesh.ts";
import type { ReadMesh } from "../routes/mesh-state.ts";
import { notificationHandlers } from "../routes/notification.ts";
import { storedDataHandlers } from "../routes/stored-data.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { createCrossOrigin } from "./cross-origin.ts";
import { createEndpoints } from "./endpoint.ts";
import { RequestRefused } from "./gateway-errors.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";
import type { HttpMetrics } from "./http-metrics.ts";
import { mount, mountPublic, type RouteHandler } from "./mount.ts";
import { plainPageSecurity } from "./page-security.ts";
import { maxBodyBytes } from "./request-body.ts";
import { UnfinishedBodies } from "./unfinished-bodies.ts";

/** Most rate limit buckets of each kind. */
const maxBuckets = 50_000;

/** Limits of incomplete bodies: ten of the largest size per key, a hundred in total. */
const bodyLimits = { maxBytesPerKey: 10 * maxBodyBytes, maxBytes: 100 * maxBodyBytes, stallMs: 10_000 };

export interface AppOptions {
  readonly settings: Omit<GatewayEnv, "NATS_URL">;
  readonly clients: GatewayClients;
  readonly keyCache: KeyCache;
  readonly permissions: PermissionCache;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  readonly openStream: OpenStream;
  readonly readMesh: ReadMesh;
  /** For `GET /mesh` as a stream. */
  readonly meshListeners: ConcurrencyLimit;
  readonly stopping: () => boolean;
}

/** The public API as an Express application. */
export function createApp({
  settings,
  clients,
  keyCache,
  permissions,
  clock,
  log,
  metrics,
  openStream,
  readMesh,
  meshListeners,
  stopping,
}: AppOptions): Express {
  const rate = (name: string, perSecond: number) => new RateLimit({ name, perSecond, maxBuckets, clock });
  const addressRate = rate("address", settings.RATE_ANONYMOUS);
  const crossOrigin = createCrossOrigin(settings.CORS_ORIGINS);
  const endpoint = createEndpoints({
    clock,
    log,
    metrics,
    crossOrigin,
    requestTimeoutMs: settings.REQUEST_TIMEOUT,
    largeAnswers: new ConcurrencyLimit({
      perMasterKey: settings.MASTER_LARGE_ANSWERS,
      perOtherKey: settings.KEY_LARGE_ANSWERS,
      total: settings.LARGE_ANSWERS,
      refusal: "too_many_answers",
    }),
    stopping,
  });
  const handlers: Handlers = {
    ...customerHandlers(clients),
    ...deviceHandlers(clients, permissions, clock),
    ...masterKeyHandlers(clients, permissions, settings.MQTT_PUBLIC_URL),
    ...meshHandlers({ readMesh, limit: meshListeners, clock, stopping }),
    ...storedDataHandlers(clients),
    ...notificationHandlers(openStream),
  };

  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  app.set("trust proxy", settings.TRUST_PROXY);
  app.set("query parser", false);

  app.use(requireHost);
  app.use(api.confirmCustomer.path, plainPageSecurity());
  // The checks of a route turn an exchange into the request that its handler is typed for.
  mount(app, api, handlers as unknown as Readonly<Record<Operation, RouteHandler>>, {
    endpoint,
    checks: {
      authenticate: createAuthentication({
        keys: clients.keys,
        cache: keyCache,
        attempts: addressRate,
        clock,
      }),
      masterRate: rate("master", settings.RATE_MASTER),
      keyRate: rate("key", settings.RATE_KEY),
      addressRate,
      bodies: new UnfinishedBodies({ ...bodyLimits, clock }),
    },
    crossOrigin,
    present: presentationOf,
  });
  mountReference(app, { endpoint, crossOrigin, publicUrl: settings.PUBLIC_URL });
  mountDashboard(app, followDashboard(settings.WEB_DIR, clock), endpoint);
  mountPublic(app, "/", () => ({ status: 302, headers: { Location: "/docs" } }), { endpoint, crossOrigin });
  app.use(
    endpoint("(unknown)", () => {
      throw new RequestRefused("route_not_found");
    }),
  );
  app.use(afterExpress(endpoint));
  return app;
}

/** HTTP/1.1 needs exactly one `Host` header (RFC 9112, 3.2). */
const requireHost: RequestHandler = ({ rawHeaders, httpVersion }, _response, next) => {
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host");
  const refused = hosts.length > 1 || (hosts.length === 0 && httpVersion === "1.1");
  next(
    refused ? new RequestRefused("request_malformed", { detail: "One `Host` header is needed." }) : undefined,
  );
};

/** Answers errors before any route: no host, or a path that cannot be decoded. */
function afterExpress(endpoint: ReturnType<typeof createEndpoints>): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) return next(error);
    const refusal =
      error instanceof URIError ? new RequestRefused("path_malformed", { cause: error }) : error;
    void endpoint("(unreadable)", () => {
      throw refusal;
    })(request, response);
  };
}
