import { IncomingMessage, type ServerResponse } from "node:http";
import { api, type Operation } from "@devmesh/contracts/rest/api";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import type { Tracer } from "@devmesh/service-kit/tracing/tracer";
import express, { type ErrorRequestHandler, type Request } from "express";
import { callerCheck, createAuthentication } from "./auth/caller.ts";
import { createEarlyRefusal } from "./auth/early-refusal.ts";
import type { KeyCache } from "./auth/key-cache.ts";
import type { PermissionCache } from "./auth/permission-cache.ts";
import { RateLimit } from "./auth/rate-limit.ts";
import { mountDashboard } from "./dashboard/dashboard.ts";
import { followDashboard } from "./dashboard/dashboard-build.ts";
import type { GatewayEnv } from "./env.ts";
import { createDownloads } from "./firmware/downloads.ts";
import type { AnswerContent } from "./firmware/firmware-content.ts";
import { ConcurrencyLimit } from "./http/concurrency-limit.ts";
import { createCrossOrigin } from "./http/cross-origin.ts";
import { createEndpoints } from "./http/endpoint.ts";
import type { Exchange } from "./http/exchange.ts";
import { RequestRefused } from "./http/gateway-errors.ts";
import type { HttpMetrics } from "./http/http-metrics.ts";
import type { App } from "./http/http-server.ts";
import { plainPageSecurity } from "./http/page-security.ts";
import { maxBodyBytes } from "./http/request-body.ts";
import {
  type AddPath,
  mount,
  mountPublic,
  type PathHandler,
  type RouteHandler,
  RouteTable,
} from "./http/router.ts";
import { UnfinishedBodies } from "./http/unfinished-bodies.ts";
import { createChecks } from "./http/validation.ts";
import type { ChangeLog } from "./mesh/change-log.ts";
import { changeOf } from "./mesh/change-of.ts";
import type { MeshHistoryStore } from "./mesh/mesh-history.ts";
import type { ReadMesh } from "./mesh/mesh-state.ts";
import type { OpenStream } from "./notifications/open-stream.ts";
import { mountDocumentsPage, mountReference } from "./reference/reference-pages.ts";
import { alertHandlers } from "./routes/alerts.ts";
import { presentationOf } from "./routes/confirmation-page.ts";
import { customerHandlers } from "./routes/customer.ts";
import { deviceHandlers } from "./routes/device.ts";
import { firmwareHandlers } from "./routes/firmware.ts";
import type { GatewayClients, Handlers } from "./routes/handlers.ts";
import { masterKeyHandlers } from "./routes/master-key.ts";
import { meshHandlers } from "./routes/mesh.ts";
import { notificationHandlers } from "./routes/notification.ts";
import { rpcHandlers } from "./routes/rpc.ts";
import { storedDataHandlers } from "./routes/stored-data.ts";
import { webhookHandlers } from "./routes/webhooks.ts";

/** Most rate limit buckets of each kind. */
const maxBuckets = 50_000;

/** Limits of incomplete bodies: ten of the largest size per key, a hundred in total. */
const bodyLimits = {
  maxBytesPerKey: 10 * maxBodyBytes,
  maxBytes: 100 * maxBodyBytes,
  stallMs: 10_000,
  longestMs: 60_000,
};

/** Before the ticket of a download. */
const ticketPath = api.downloadFirmware.path.replace(":ticket", "");

/** Contents of firmware that are received at a time, whoever sends them. */
const maxUploads = 4;

export interface AppOptions {
  readonly settings: Omit<GatewayEnv, "NATS_URL">;
  readonly clients: GatewayClients;
  readonly keyCache: KeyCache;
  readonly permissions: PermissionCache;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  readonly tracer: Tracer | undefined;
  readonly openStream: OpenStream;
  readonly readMesh: ReadMesh;
  readonly readHistory: MeshHistoryStore["read"];
  readonly answerContent: AnswerContent;
  readonly changes: Pick<ChangeLog, "add" | "read">;
  /** For `GET /mesh` as a stream. */
  readonly meshListeners: ConcurrencyLimit;
  readonly stopping: () => boolean;
}

/** The public API of one gateway. */
export interface GatewayApp extends App {
  /** Whether `TRUST_PROXY` names a peer. */
  readonly isProxy: (address: string | undefined) => boolean;
  /** Lets requests that are not answered yet end their connections; those that begin ask `stopping`. */
  readonly endConnections: () => void;
}

/**
 * The public API and the pages. Paths of the API are found in a table; Express routes the pages, the reference and the
 * dashboard.
 */
export function createApp({
  settings,
  clients,
  keyCache,
  permissions,
  clock,
  log,
  metrics,
  tracer,
  openStream,
  readMesh,
  readHistory,
  answerContent,
  changes,
  meshListeners,
  stopping,
}: AppOptions): GatewayApp {
  const rate = (name: string, perSecond: number) => new RateLimit({ name, perSecond, maxBuckets, clock });
  const addressRate = rate("address", settings.RATE_ANONYMOUS);
  const callers = {
    authenticate: createAuthentication({
      keys: clients.keys,
      cache: keyCache,
      attempts: addressRate,
      clock,
    }),
    masterRate: rate("master", settings.RATE_MASTER),
    keyRate: rate("key", settings.RATE_KEY),
    addressRate,
  };
  const bodies = new UnfinishedBodies({ ...bodyLimits, clock });
  const crossOrigin = createCrossOrigin(settings.CORS_ORIGINS);
  const running = new Set<Exchange>();
  const endpoint = createEndpoints({
    clock,
    log,
    metrics,
    tracer,
    crossOrigin,
    requestTimeoutMs: settings.REQUEST_TIMEOUT,
    largeAnswers: new ConcurrencyLimit({
      perMasterKey: settings.MASTER_LARGE_ANSWERS,
      perOtherKey: settings.KEY_LARGE_ANSWERS,
      total: settings.LARGE_ANSWERS,
      refusal: "too_many_answers",
    }),
    stopping,
    running,
  });
  const download = createDownloads({
    jobs: clients.jobs,
    answerContent,
    attempts: addressRate,
    rate: rate("ticket", settings.RATE_KEY),
    clock,
  });
  const handlers: Handlers = {
    ...customerHandlers(clients),
    ...deviceHandlers(clients, permissions, clock),
    ...rpcHandlers(clients, permissions),
    ...masterKeyHandlers(clients, permissions, settings.MQTT_PUBLIC_URL, clock),
    ...meshHandlers({ readMesh, readHistory, changes, limit: meshListeners, clock, stopping }),
    ...webhookHandlers(clients.webhooks),
    ...alertHandlers(clients.alerts),
    ...firmwareHandlers({
      jobs: clients.jobs,
      answerContent,
      download: download.answer,
      uploads: new ConcurrencyLimit({
        perMasterKey: maxUploads,
        perOtherKey: 0,
        total: maxUploads,
        refusal: "too_many_uploads",
      }),
      clock,
    }),
    ...storedDataHandlers(clients, clock),
    ...notificationHandlers(openStream),
  };

  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  app.set("trust proxy", settings.TRUST_PROXY);
  app.set("query parser", false);
  const trusts: (address: string | undefined, hop: number) => boolean = app.get("trust proxy fn");
  const isProxy = (address: string | undefined) => trusts(address, 0);
  const refuseEarly = createEarlyRefusal({
    addressRate,
    keyCache,
    hasOpenTicket: ({ url }) => url.startsWith(ticketPath) && download.isOpen(url.slice(ticketPath.length)),
    isProxy,
    crossOrigin,
    metrics,
  });
  /** For whatever no key is needed for: it costs the address a token. */
  const publicEndpoint: typeof endpoint = (route, answer, present) =>
    endpoint(
      route,
      (exchange) => {
        addressRate.take(exchange.address, exchange.headers);
        return answer(exchange);
      },
      present,
    );

  const table = new RouteTable<PathHandler>();
  const add: AddPath = (path, handler) => {
    if (path.startsWith("/api/")) table.add(path, handler);
    else app.all(path, (request, response) => handler(request, response));
  };
  app.use([api.registerCustomer.path, api.confirmCustomer.path], plainPageSecurity());
  // The checks of a route turn an exchange into the request that its handler is typed for.
  mount(add, api, handlers as unknown as Readonly<Record<Operation, RouteHandler>>, {
    endpoint,
    publicEndpoint,
    checkOf: (route) => createChecks(route, { checkCaller: callerCheck(route, callers), bodies, clock }),
    crossOrigin,
    present: presentationOf,
    onChange(made, exchange, reply) {
      const change = changeOf(made, exchange, reply, clock.now());
      if (change !== null) changes.add(change);
    },
  });
  mountReference(app, add, {
    publicEndpoint,
    crossOrigin,
    publicUrl: settings.PUBLIC_URL,
    mqttPublicUrl: settings.MQTT_PUBLIC_URL,
  });
  mountDashboard(app, {
    current: followDashboard(settings.WEB_DIR, clock),
    keyFile: settings.TRUST_PROXY === false ? (settings.MASTER_KEY_FILE ?? null) : null,
    publicEndpoint,
  });
  mountDocumentsPage(app, add, { publicEndpoint, crossOrigin });
  mountPublic(add, "/", () => ({ status: 302, headers: { Location: "/docs" } }), {
    publicEndpoint,
    crossOrigin,
  });
  const unknown = publicEndpoint("(unknown)", () => {
    throw new RequestRefused("route_not_found");
  });
  app.use((request, response) => unknown(request, response));
  const refuse = (error: unknown, request: Request, response: ServerResponse) =>
    void publicEndpoint("(unreadable)", () => {
      throw error;
    })(request, response);
  const afterExpress: ErrorRequestHandler = (error, request, response, next) =>
    response.headersSent ? next(error) : refuse(error, request, response);
  app.use(afterExpress);

  class ExpressRequest extends IncomingMessage {}
  Object.setPrototypeOf(ExpressRequest.prototype, app.request);
  return {
    IncomingMessage: ExpressRequest,
    isProxy,
    handle(incoming, response) {
      const request = incoming as Request;
      if (refuseEarly(request, response)) return;
      let found: ReturnType<typeof table.find>;
      try {
        assertHost(request);
        found = table.find(request.url);
      } catch (error) {
        return refuse(error, request, response);
      }
      if (found === undefined) app(request, response);
      else found.value(request, response, found.params);
    },
    endConnections() {
      for (const { response } of running) response.shouldKeepAlive = false;
    },
    cutShort() {
      const reason = ServiceError.of("unavailable", { cause: new Error("the gateway stops") });
      for (const exchange of running) exchange.abort(reason);
    },
  };
}

/** HTTP/1.1 needs exactly one `Host` header (RFC 9112, 3.2). */
function assertHost({ rawHeaders, httpVersion }: IncomingMessage): void {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === "host") hosts++;
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1"))
    throw new RequestRefused("request_malformed", { detail: "One `Host` header is needed." });
}
