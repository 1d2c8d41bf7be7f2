import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, withTimeout } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { listen } from "@devmesh/service-kit/process/listen";
import { HttpConnection } from "./connection.ts";
import type { ConnectionLimit } from "./connection-limit.ts";
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
  readonly connectionLimit: ConnectionLimit;
  /** Longest time of a request with its body, in milliseconds; by default a minute. Uploads have another clock. */
  readonly requestTimeoutMs?: number;
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
  const { app, host, port, socketTimeoutMs, lameDuckMs, connectionLimit, clock, log } = options;
  const { requestTimeoutMs = 60_000 } = options;
  const { IncomingMessage, handle } = app;
  const keepAliveTimeout = announcedIdleMs(lameDuckMs);
  const server = createServer({
    ...limits,
    headersTimeout: Math.min(limits.headersTimeout, requestTimeoutMs),
    connectionsCheckingInterval: Math.min(limits.connectionsCheckingInterval, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout,
    keepAliveTimeoutBuffer: idleMs - keepAliveTimeout,
    IncomingMessage,
    shouldUpgradeCallback: asksForWebSocket,
  });
  server.timeout = socketTimeoutMs;
  const connections = new WeakMap<Socket, HttpConnection>();
  server.on("connection", (socket: Socket) => {
    const slot = connectionLimit.admit(socket);
    if (slot === null) socket.destroy();
    else connections.set(socket, new HttpConnection({ socket, slot, clock }));
  });
  const enqueue = (request: IncomingMessage, response: ServerResponse) =>
    connections.get(request.socket)?.add(request, response, () => handle(request, response));
  server.on("request", enqueue);
  // The reader of the body sends `100 Continue`.
  server.on("checkContinue", enqueue);
  // An unknown expectation may be ignored (RFC 9110, 10.1.1).
  server.on("checkExpectation", enqueue);
  server.on("clientError", (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket;
    const connection = connections.get(socket);
    if (connection === undefined || !socket.writable || error.code === "ECONNRESET") socket.destroy();
    else if (error.code !== tooLate || !connection.isUnhurried) connection.refuse(() => refusalOf(error));
  });
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (request, duplex, head) => {
    // The type says less than Node documents: upgrades come with the socket of the connection.
    const socket = duplex as Socket;
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    socket.on("error", () => socket.destroy());
    connections
      .get(socket)
      ?.passOn((rest) => answerUpgrade(handle, request, { socket, head: Buffer.concat([head, rest]) }));
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
function answerUpgrade(handle: App["handle"], request: IncomingMessage, upgrade: Upgrade): void {
  const { socket } = upgrade;
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // A client that does not end its side must not keep the connection.
  response.once("finish", () => socket.destroySoon());
  upgrades.set(request, upgrade);
  handle(request, response);
}

const tooLate = "ERR_HTTP_REQUEST_TIMEOUT";
const unreadable: Readonly<Record<string, GatewayReason>> = {
  HPE_HEADER_OVERFLOW: "header_too_large",
  [tooLate]: "request_incomplete",
};

/** The answer to what Node could not parse as a request. */
function refusalOf({ code = "" }: NodeJS.ErrnoException): string {
  const requestId = crypto.randomUUID();
  const { status, problem } = problemOf(
    new RequestRefused(unreadable[code] ?? "request_malformed"),
    requestId,
  );
  const body = JSON.stringify(problem);
  return [
    `HTTP/1.1 ${status} ${problem.title}`,
    "Content-Type: application/problem+json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}
