import { WebSocketServer } from "ws";
import type { Exchange, Reply } from "../http/exchange.ts";
import { RequestRefused } from "../http/gateway-errors.ts";
import { type Upgrade, upgradeOf } from "../http/http-server.ts";
import { eventStreamSink } from "./event-stream-sink.ts";
import type { NotificationHub } from "./hub.ts";
import { Listener, type ListenerOptions } from "./listener.ts";
import type { NotificationMetrics } from "./notification-metrics.ts";
import type { Sink } from "./sink.ts";
import { websocketSink } from "./websocket-sink.ts";

/** Timeout for a gateway that has just started to find its position in the stream of events, in milliseconds. */
const positionMs = 3_000;
/** Most bytes of a message from a client, which is dropped anyway. */
const maxClientMessage = 4 * 1024;

type StreamRequest = Pick<ListenerOptions, "principal" | "caller" | "isRedacted" | "subscription">;

/** Answers a request that has passed its checks with a stream: over a WebSocket, or as `text/event-stream`. */
export type OpenStream = (request: StreamRequest) => Promise<Reply>;

export function createStreamOpener(
  hub: NotificationHub,
  { maxWaitingBytes, metrics }: { readonly maxWaitingBytes: number; readonly metrics: NotificationMetrics },
): OpenStream {
  const websockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // The sink answers pings as far as the client reads.
    autoPong: false,
    maxPayload: maxClientMessage,
  });

  function join(request: StreamRequest, sink: Sink): void {
    hub.join(new Listener({ ...request, sink, maxWaitingBytes, onSlow: () => metrics.slow.inc() }));
  }

  function upgrade(
    request: StreamRequest,
    exchange: Exchange,
    { socket, head }: Upgrade,
    release: () => void,
  ) {
    exchange.response.detachSocket(socket);
    exchange.upgraded = true;
    // Not on the WebSocket: a failed handshake makes none.
    socket.once("close", release);
    socket.setTimeout(0);
    socket.setNoDelay(true);
    const sendHeaders = (lines: string[]) => {
      for (const [name, value] of Object.entries(exchange.headers)) lines.push(`${name}: ${value}`);
    };
    websockets.once("headers", sendHeaders);
    websockets.handleUpgrade(exchange.request, socket, head, (websocket) => {
      join(request, websocketSink(websocket, socket));
    });
    websockets.off("headers", sendHeaders);
  }

  /** Throws before anything was sent, or takes the connection over. */
  function open(request: StreamRequest, exchange: Exchange): void {
    const wanted = upgradeOf(exchange.request);
    if (wanted !== undefined) assertHandshake(exchange);
    else if (!acceptsEventStream(exchange)) throw new RequestRefused("not_acceptable");
    const release = hub.admit(request.caller.keyId, request.principal.kind);
    const { response, headers } = exchange;
    if ((wanted?.socket ?? response).destroyed) {
      release();
      return;
    }
    if (wanted !== undefined) {
      upgrade(request, exchange, wanted, release);
      return;
    }
    headers["Content-Type"] = "text/event-stream";
    headers.Connection = "close";
    // Keeps proxies from buffering frames.
    headers["X-Accel-Buffering"] = "no";
    response.writeHead(200, headers);
    if (exchange.request.method === "HEAD") {
      release();
      response.end();
      return;
    }
    const sink = eventStreamSink(response, request.subscription.after ?? hub.position);
    void sink.gone.then(release);
    join(request, sink);
  }

  return async (request) => {
    await hub.awaitPosition(positionMs);
    return { status: 200, headers: {}, takeOver: (exchange) => open(request, exchange) };
  };
}

/** The headers that a handshake needs besides `Upgrade` (RFC 6455, 4.2.1). */
function assertHandshake({ request: { headers } }: Exchange): void {
  const isKey = /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "");
  if (isKey && headers["sec-websocket-version"] === "13") return;
  throw new RequestRefused("handshake_invalid", { headers: { "Sec-WebSocket-Version": "13" } });
}

function acceptsEventStream({ request: { headers } }: Exchange): boolean {
  return /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(headers.accept ?? "");
}
