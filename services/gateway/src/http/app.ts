import type { mesh } from "@devmesh/contracts/mesh";
import { api, type Operation } from "@devmesh/contracts/rest/api";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Clients } from "@devmesh/service-kit/implementation";
import type { Logger } from "@devmesh/service-kit/logger";
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import { createAuthentication } from "../auth/authenticate.ts";
import type { KeyCache } from "../auth/key-cache.ts";
import type { AclPermissions } from "../auth/permission-cache.ts";
import { RateLimit } from "../auth/rate-limit.ts";
import { mountDashboard } from "../dashboard/dashboard.ts";
import { followDashboard } from "../dashboard/dashboard-build.ts";
import type { GatewayEnv } from "../env.ts";
import type { OpenStream } from "../notifications/open-stream.ts";
import { mountReference } from "../reference/reference-pages.ts";
import { presentationOf } from "../routes/confirmation-page.ts";
import { customerHandlers } from "../routes/customer.ts";
import { deviceAccessHandlers } from "../routes/device-access.ts";
import { deviceKeyHandlers } from "../routes/device-key.ts";
import { masterKeyHandlers } from "../routes/master-key.ts";
import { meshHandlers } from "../routes/mesh.ts";
import type { ReadMesh } from "../routes/mesh-state.ts";
import { mqttAddressHandlers } from "../routes/mqtt-address.ts";
import { notificationHandlers } from "../routes/notification.ts";
import { registrationHandlers } from "../routes/registration.ts";
import { storedDataHandlers } from "../routes/stored-data.ts";
import { Places } from "./concurrency-limit.ts";
import { createCrossOrigin } from "./cross-origin.ts";
import { createEndpoints } from "./endpoint.ts";
import { RequestRefused } from "./gateway-errors.ts";
import type { Handlers } from "./handlers.ts";
import type { HttpMetrics } from "./http-metrics.ts";
import { mount, mountPublic, type RouteHandler } from "./mount.ts";
import { plainPageSecurity } from "./page-security.ts";
import { maxBodyBytes } from "./request-body.ts";
import { UnfinishedBodies } from "./unfinished-bodies.ts";

/** Most keys, and most addresses, whose rate is remembered. */
const maxBuckets = 50_000;

/** Of bodies that have not arrived whole: as many bytes as ten of the largest for a key, and as a hundred in all. */
const bodyLimits = { maxBytesOfKey: 10 * maxBodyBytes, maxBytes: 100 * maxBodyBytes, stallMs: 10_000 };

/** The part of the environment that decides how requests are answered. */
type AppSettings = Pick<
  GatewayEnv,
  | "CORS_ORIGINS"
  | "RATE_MASTER"
  | "RATE_KEY"
  | "RATE_ANONYMOUS"
  | "TRUST_PROXY"
  | "REQUEST_TIMEOUT"
  | "MASTER_LARGE_ANSWERS"
  | "KEY_LARGE_ANSWERS"
  | "LARGE_ANSWERS"
  | "PUBLIC_URL"
  | "MQTT_PUBLIC_URL"
  | "WEB_DIR"
>;

/** What the application is assembled from. */
export interface AppOptions {
  readonly settings: AppSettings;
  readonly clients: Clients<(typeof mesh)["gateway"]["calls"]>;
  /** Verified keys; its owner drops what is revoked. */
  readonly keyCache: KeyCache;
  /** What ACLs permitted; its owner drops those of devices that change. */
  readonly permissions: AclPermissions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  /** Answers with the notification stream. */
  readonly openStream: OpenStream;
  readonly readMesh: ReadMesh;
  /** Of `GET /mesh` as a stream. */
  readonly meshListeners: Places;
  /** Whether the gateway is stopping. */
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
    largeAnswers: new Places(
      {
        ofMasterKey: settings.MASTER_LARGE_ANSWERS,
        ofOtherKey: settings.KEY_LARGE_ANSWERS,
        inAll: settings.LARGE_ANSWERS,
      },
      "too_many_answers",
    ),
    stopping,
  });
  const handlers: Handlers = {
    ...registrationHandlers(clients),
    ...customerHandlers(clients),
    ...deviceAccessHandlers(clients, permissions, clock),
    ...masterKeyHandlers(clients, permissions),
    ...meshHandlers({ readMesh, places: meshListeners, clock, stopping }),
    ...mqttAddressHandlers(settings.MQTT_PUBLIC_URL),
    ...storedDataHandlers(clients),
    ...deviceKeyHandlers(clients),
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
  // Checked by its route's declaration, an exchange is the request that the route's handler is typed for.
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

/** HTTP/1.1 asks for one `Host` header (RFC 9112, 3.2). */
const requireHost: RequestHandler = ({ rawHeaders, httpVersion }, _response, next) => {
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host");
  const refused = hosts.length > 1 || (hosts.length === 0 && httpVersion === "1.1");
  next(
    refused ? new RequestRefused("request_malformed", { detail: "One `Host` header is needed." }) : undefined,
  );
};

/** Errors raised before any route: no host, or a path that cannot be decoded; anything else is a fault of ours. */
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
