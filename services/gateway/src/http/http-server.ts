import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "@devmesh/service-kit/clock";
import { listen } from "@devmesh/service-kit/listen";
import type { Logger } from "@devmesh/service-kit/logger";
import type { Express } from "express";
import { keepUpgrade } from "../notifications/upgrade.ts";
import { type GatewayReason, RequestRefused } from "./gateway-errors.ts";
import { problemOf } from "./problem.ts";
import { comesWithin } from "./with-timeout.ts";

/** Where and how the gateway listens. */
export interface HttpServerOptions {
  readonly app: Express;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Longest silence of a connection in the middle of a request or an answer, in milliseconds. */
  readonly socketTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The gateway listening. */
export interface HttpServer {
  /** `http://HOST:PORT`. */
  readonly url: string;
  /** Takes no new connections, lets running requests finish within `boundMs`, then ends what is left. */
  stop(boundMs: number): Promise<void>;
}

/** Bounds that keep slow or broken clients from holding the gateway's memory; times in milliseconds. */
const limits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 60_000,
  /** Longer than the 60 s that load balancers commonly keep theirs, so that it is not us who races them. */
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
  // Refused by the application, with a problem and a request id, rather than by Node without either.
  requireHostHeader: false,
};

/** Starts to listen; rejects when the address is taken. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { app, host, port, socketTimeoutMs, clock, log } = options;
  const server = createServer({ ...limits, shouldUpgradeCallback: asksForWebSocket }, app);
  server.timeout = socketTimeoutMs;
  // The body's reader says `100 Continue`, once it is sure to read.
  server.on("checkContinue", app);
  // An expectation that is not known may be left unmet (RFC 9110, 10.1.1).
  server.on("checkExpectation", app);
  server.on("clientError", refuseUnreadable);
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (request, socket, head) => {
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    answerUpgrade(app, request, socket, head);
  });
  const url = await listen(server, port, host);
  log.info({ url }, "listening");
  return { url, stop: (boundMs) => stopServer({ server, upgraded }, boundMs, clock, log) };
}

/** `upgraded`: connections that the server has handed over, and closes no more itself. */
async function stopServer(
  { server, upgraded }: { readonly server: Server; readonly upgraded: ReadonlySet<Duplex> },
  boundMs: number,
  clock: Clock,
  log: Logger,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  if (await comesWithin(boundMs, closed, clock)) return;
  log.warn("requests were cut short");
  server.closeAllConnections();
  for (const socket of upgraded) socket.destroy();
  await closed;
}

/** Other upgrades are not taken: the request is answered as if it had not asked (RFC 9110, 7.8). */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/**
 * Lets the application answer a request that asks for a WebSocket, by the same checks as any other. A route that is
 * one takes the connection over; any other answer goes out as it is and ends the connection.
 */
function answerUpgrade(app: Express, request: IncomingMessage, duplex: Duplex, head: Buffer): void {
  // The server gives upgrades sockets of its own, which are those of `node:net`.
  const socket = duplex as Socket;
  const response = new ServerResponse(request);
  socket.on("error", () => socket.destroy());
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // As after any last answer: a client that does not end its side must not keep the connection.
  response.once("finish", () => socket.destroySoon());
  keepUpgrade(request, { socket, head });
  app(request, response);
}

const unreadable: Readonly<Record<string, GatewayReason>> = {
  HPE_HEADER_OVERFLOW: "header_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_incomplete",
};

/** Answers what Node could not read as a request; there is no request object for it. */
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
