import type { ServerResponse } from "node:http";
import { WebSocketServer } from "ws";
import type { Caller, Exchange } from "../http/exchange.ts";
import { RequestRefused } from "../http/gateway-errors.ts";
import type { Reply } from "../http/reply.ts";
import { eventStreamOutlet } from "./event-stream-sink.ts";
import type { NotificationHub } from "./hub.ts";
import { Listener, type ListenerPrincipal, type ListenerWishes } from "./listener.ts";
import type { NotificationMetrics } from "./notification-metrics.ts";
import type { Outlet } from "./sink.ts";
import { type Upgrade, upgradeOf } from "./upgrade.ts";
import { websocketOutlet } from "./websocket-sink.ts";

/** How long a gateway that has just started may take to find its place in the stream of events, in milliseconds. */
const positionMs = 3_000;
/** Most bytes of a message from a client; clients have nothing to say. */
const maxClientMessage = 4 * 1024;

/** Who wants to listen, and to what. */
interface StreamRequest {
  readonly principal: ListenerPrincipal;
  readonly caller: Caller;
  readonly wishes: ListenerWishes;
}

/** Answers a request that has passed its checks with a stream: over a WebSocket, or as `text/event-stream`. */
export type OpenStream = (request: StreamRequest) => Promise<Reply>;

/** Streams that get what `hub` tells. */
export function createStreamOpener(
  hub: NotificationHub,
  { maxWaitingBytes, metrics }: { readonly maxWaitingBytes: number; readonly metrics: NotificationMetrics },
): OpenStream {
  const websockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // The outlet answers pings, as far as the client reads.
    autoPong: false,
    maxPayload: maxClientMessage,
  });

  function listen(request: StreamRequest, outlet: Outlet): void {
    hub.join(new Listener({ ...request, outlet, maxWaitingBytes, onSlow: () => metrics.slow.inc() }));
  }

  /** Throws before anything was sent, or hands the connection over. */
  function upgrade(
    request: StreamRequest,
    exchange: Exchange,
    { socket, head }: Upgrade,
    release: () => void,
  ) {
    exchange.response.detachSocket(socket);
    exchange.upgraded = true;
    // Also where the handshake fails and there never is a WebSocket.
    socket.once("close", release);
    socket.setTimeout(0);
    socket.setNoDelay(true);
    const sendHeaders = (lines: string[]) => {
      for (const [name, value] of Object.entries(exchange.headers)) lines.push(`${name}: ${value}`);
    };
    websockets.once("headers", sendHeaders);
    websockets.handleUpgrade(exchange.request, socket, head, (websocket) => {
      listen(request, websocketOutlet(websocket, socket));
    });
    websockets.off("headers", sendHeaders);
  }

  return async (request) => {
    await hub.awaitPosition(positionMs);
    return { status: 200, headers: {}, takeOver: (exchange) => open(request, exchange) };
  };

  function open(request: StreamRequest, exchange: Exchange): void {
    const wanted = upgradeOf(exchange.request);
    if (wanted !== undefined) assertHandshake(exchange);
    else if (!acceptsEventStream(exchange)) throw new RequestRefused("not_acceptable");
    const release = hub.admit(request.caller.keyId, request.principal.kind);
    if (wanted !== undefined) {
      if (wanted.socket.destroyed) release();
      else upgrade(request, exchange, wanted, release);
      return;
    }
    const { response } = exchange;
    if (response.destroyed) {
      release();
      return;
    }
    sendHead(response, exchange);
    if (exchange.request.method === "HEAD") {
      release();
      response.end();
      return;
    }
    const outlet = eventStreamOutlet(response, request.wishes.after ?? hub.position);
    void outlet.gone.then(release);
    listen(request, outlet);
  }
}

/** Leaves with the exchange what kind of answer it is. */
function sendHead(response: ServerResponse, { headers }: Exchange): void {
  headers["Content-Type"] = "text/event-stream";
  // It ends when the stream does, and no proxy is to hold frames back.
  headers.Connection = "close";
  headers["X-Accel-Buffering"] = "no";
  response.writeHead(200, headers);
}

/** What a handshake has to hold beside what made it one (RFC 6455, 4.2.1). */
function assertHandshake({ request: { headers } }: Exchange): void {
  const isKey = /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "");
  if (isKey && headers["sec-websocket-version"] === "13") return;
  throw new RequestRefused("handshake_invalid", { headers: { "Sec-WebSocket-Version": "13" } });
}

function acceptsEventStream({ request: { headers } }: Exchange): boolean {
  return /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(headers.accept ?? "");
}
