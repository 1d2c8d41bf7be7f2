import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, withTimeout } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { listen } from "@devmesh/service-kit/process/listen";
import { type GatewayReason, RequestRefused } from "./gateway-errors.ts";
import { problemOf } from "./problem.ts";

/** What answers the requests of a server. */
export interface App {
  /** The class of its requests: Express would exchange the prototype of each. */
  readonly IncomingMessage: typeof IncomingMessage;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Aborts the calls of requests that are not answered, so that these are answered with `unavailable`. */
  readonly cutShort: () => void;
}

export interface HttpServerOptions {
  readonly app: App;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Longest silence of a connection during a request or an answer, in milliseconds. */
  readonly socketTimeoutMs: number;
  /** How long a stopping gateway still takes requests, in milliseconds. */
  readonly lameDuckMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface HttpServer {
  /** `http://HOST:PORT`. */
  readonly url: string;
  /**
   * Accepts no new connections; running requests that take longer than `timeoutMs` are answered with `unavailable`, or
   * cut off where they wait for the client.
   */
  stop(timeoutMs: number): Promise<void>;
}

/** Limits that keep slow clients from using up memory; times in milliseconds. */
const limits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 15_000,
  // That of an upload; other bodies have a minute (`UnfinishedBodies`).
  requestTimeout: 15 * 60_000,
  connectionsCheckingInterval: 5_000,
  // The application refuses it instead, with a problem and a request id.
  requireHostHeader: false,
};

/**
 * Longest silence of a connection between two requests, in milliseconds: longer than the 60 s that are common for load
 * balancers, which must be the first to close.
 */
const idleMs = 65_000;

/** How long requests that are cut short have for their answers, in milliseconds. */
const lastAnswersMs = 500;

/** Starts to listen; rejects when the address is taken. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { app, host, port, socketTimeoutMs, lameDuckMs, clock, log } = options;
  const { IncomingMessage, handle } = app;
  const keepAliveTimeout = announcedIdleMs(lameDuckMs);
  const server = createServer(
    {
      ...limits,
      keepAliveTimeout,
      keepAliveTimeoutBuffer: idleMs - keepAliveTimeout,
      IncomingMessage,
      shouldUpgradeCallback: asksForWebSocket,
    },
    handle,
  );
  server.timeout = socketTimeoutMs;
  // The reader of the body sends `100 Continue`.
  server.on("checkContinue", handle);
  // An unknown expectation may be ignored (RFC 9110, 10.1.1).
  server.on("checkExpectation", handle);
  server.on("clientError", refuseUnreadable);
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (request, socket, head) => {
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    answerUpgrade(handle, request, socket, head);
  });
  const url = await listen(server, port, host);
  log.info({ url }, "listening");
  return { url, stop: (timeoutMs) => stopServer({ app, server, upgraded }, timeoutMs, clock, log) };
}

/**
 * The time in `Keep-Alive: timeout`. A client that obeys it sends nothing more on a connection that was idle when the
 * gateway began to stop, once `lameDuckMs` are over and it is closed.
 */
function announcedIdleMs(lameDuckMs: number): number {
  return lameDuckMs === 0 ? idleMs : Math.min(idleMs, lameDuckMs * 0.75);
}

interface RunningServer {
  readonly app: App;
  readonly server: Server;
  /** Connections that `server` no longer closes itself. */
  readonly upgraded: ReadonlySet<Duplex>;
}

async function stopServer(
  { app, server, upgraded }: RunningServer,
  timeoutMs: number,
  clock: Clock,
  log: Logger,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  if (await withTimeout(timeoutMs, closed, clock)) return;
  log.warn("requests were cut short");
  app.cutShort();
  if (await withTimeout(lastAnswersMs, closed, clock)) return;
  server.closeAllConnections();
  for (const socket of upgraded) socket.destroy();
  await closed;
}

/** Requests for other upgrades are answered as if they had not asked (RFC 9110, 7.8). */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** The connection of a request that asks for a WebSocket. */
export interface Upgrade {
  readonly socket: Socket;
  /** What the client has sent after the request. */
  readonly head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** The connection of a request that asks for a WebSocket; undefined for any other request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}

/**
 * Passes a request for a WebSocket to the application, for the same checks as any other. A stream takes the connection
 * over; any other answer ends it.
 */
function answerUpgrade(handle: App["handle"], request: IncomingMessage, duplex: Duplex, head: Buffer): void {
  // The type says less than Node documents: upgrades come with the socket of the connection.
  const socket = duplex as Socket;
  const response = new ServerResponse(request);
  socket.on("error", () => socket.destroy());
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // A client that does not end its side must not keep the connection.
  response.once("finish", () => socket.destroySoon());
  upgrades.set(request, { socket, head });
  handle(request, response);
}

const unreadable: Readonly<Record<string, GatewayReason>> = {
  HPE_HEADER_OVERFLOW: "header_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_incomplete",
};

/** Answers what Node could not parse as a request. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const reason = unreadable[error.code ?? ""] ?? "request_malformed";
  const requestId = crypto.randomUUID();
  const { status, problem } = problemOf(new RequestRefused(reason), requestId);
  const body = JSON.stringify(problem);
  socket.end(
    [
      `HTTP/1.1 ${status} ${problem.title}`,
      "Content-Type: application/problem+json",
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      "Connection: close",
      "",
      body,
    ].join("\r\n"),
    () => socket.destroy(),
  );
}
