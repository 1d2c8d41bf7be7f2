import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Duplex, PassThrough } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import type { Clock } from "@devmesh/service-kit/clock";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import { AddressQueue } from "../address-queue.ts";
import { maxPacketBytes } from "../packets/packet-stream.ts";
import { readProxyHeader } from "./proxy-protocol.ts";

/** TLS handshakes that are made at a time; others wait, and addresses take turns. */
const maxHandshakes = 200;

/** How long a PROXY header, a TLS handshake and the upgrade to a WebSocket may take, in milliseconds. */
const openingMs = 5_000;

/** Connections that the kernel keeps until they are accepted. */
const backlog = 8_192;

/** Time after which an idle connection is asked for a sign of life by TCP, in milliseconds. */
const tcpKeepAliveMs = 60_000;

const subprotocols = ["mqtt", "mqttv3.1"] as const;
const webSocketPaths = ["/", "/mqtt"];

/** Private key and certificate in PEM. */
interface TlsCertificate {
  readonly key: string;
  readonly cert: string;
}

/** Where devices connect, and what happens with their connections. */
export interface MqttListenersOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Null: none. */
  readonly tls: ({ readonly port: number } & TlsCertificate) | null;
  readonly webSocketPort: number | null;
  /** Whether a peer is a proxy, which begins each connection with a PROXY header. */
  readonly isProxy: (address: string) => boolean;
  readonly clock: Clock;
  /** Takes a connection that is ready for MQTT. */
  readonly accept: (stream: Duplex, address: string) => void;
  /** A connection failed before it. */
  readonly onFailed: (address: string, why: "proxy" | "tls" | "websocket", detail: string) => void;
}

/** Listeners that are open. */
export interface MqttListeners {
  readonly port: number;
  readonly tlsPort: number | null;
  readonly webSocketPort: number | null;
  /** Uses another certificate for new connections. */
  renewCertificate(certificate: TlsCertificate): void;
  /** Takes no more connections; those that are open stay. */
  stop(): Promise<void>;
}

/** Opens all listeners; rejects when a port is taken. */
export async function openMqttListeners(options: MqttListenersOptions): Promise<MqttListeners> {
  const { host, port, tls, webSocketPort, accept } = options;
  let context: SecureContext | null = tls === null ? null : createSecureContext(tls);
  const handshakes = new AddressQueue(maxHandshakes);
  const servers: Server[] = [];
  const open = async (at: number, serve: (stream: Duplex, address: string) => void): Promise<number> => {
    const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveMs });
    server.on("connection", (socket) => {
      socket.on("error", ignore);
      withClientAddress(socket, options, serve);
    });
    servers.push(server);
    return await listenOn(server, host, at);
  };
  const webSockets = webSocketPort === null ? null : acceptWebSockets(options);
  const opened = [
    await open(port, accept),
    tls === null
      ? null
      : await open(tls.port, (stream, address) => {
          const secureContext = context;
          if (secureContext !== null)
            void handshakes.run(address, () => handshake(stream, address, secureContext, options));
        }),
    webSocketPort === null || webSockets === null ? null : await open(webSocketPort, webSockets),
  ] as const;
  return {
    port: opened[0],
    tlsPort: opened[1],
    webSocketPort: opened[2],
    renewCertificate(certificate) {
      context = createSecureContext(certificate);
    },
    async stop() {
      // `close` waits for connections, too.
      for (const server of servers) server.close();
    },
  };
}

/** An error of a socket is read where the socket closes. */
function ignore(): void {}

async function listenOn(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, backlog }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/** Reads the PROXY header of a connection from a proxy. */
function withClientAddress(
  socket: Socket,
  { isProxy, clock, onFailed }: MqttListenersOptions,
  serve: (stream: Duplex, address: string) => void,
): void {
  const peer = socket.remoteAddress ?? "";
  if (!isProxy(peer)) {
    serve(socket, peer);
    return;
  }
  let bytes: Buffer = Buffer.alloc(0);
  const fail = (detail: string) => {
    socket.destroy();
    onFailed(peer, "proxy", detail);
  };
  const cancel = clock.schedule(openingMs, () => fail("no PROXY header came in time"));
  socket.once("close", cancel);
  socket.on("data", function read(piece: Buffer) {
    bytes = Buffer.concat([bytes, piece]);
    const header = readProxyHeader(bytes);
    if (header === "incomplete") return;
    cancel();
    socket.off("data", read);
    socket.pause();
    if (header === "invalid") fail("a connection from a proxy does not begin with a PROXY header");
    else serve(withBytesFirst(socket, bytes.subarray(header.length)), header.address ?? peer);
  });
}

/** A stream of these bytes and then those of the socket, since TLS would read past bytes that are put back. */
function withBytesFirst(socket: Socket, bytes: Buffer): Duplex {
  if (bytes.length === 0) return socket;
  const readable = new PassThrough();
  readable.write(bytes);
  socket.pipe(readable);
  const stream = Duplex.from({ readable, writable: socket });
  stream.on("error", ignore);
  stream.once("close", () => socket.destroy());
  return stream;
}

async function handshake(
  stream: Duplex,
  address: string,
  secureContext: SecureContext,
  { clock, accept, onFailed }: MqttListenersOptions,
): Promise<void> {
  if (stream.destroyed) return;
  const socket = new TLSSocket(stream, { isServer: true, secureContext });
  const outcome = Promise.withResolvers<string | null>();
  const cancel = clock.schedule(openingMs, () => outcome.resolve("no handshake in time"));
  socket.once("secure", () => outcome.resolve(null));
  socket.on("error", (error: NodeJS.ErrnoException) => outcome.resolve(error.code ?? error.message));
  socket.once("close", () => outcome.resolve("closed"));
  const failure = await outcome.promise;
  cancel();
  if (failure === null) accept(socket, address);
  else {
    stream.destroy();
    onFailed(address, "tls", failure);
  }
}

/** Serves the handshakes of WebSockets. */
function acceptWebSockets({ accept, onFailed }: MqttListenersOptions) {
  const addresses = new WeakMap<object, string>();
  const http = createHttpServer({ headersTimeout: openingMs, requestTimeout: openingMs }, (_, response) => {
    response.writeHead(426, { connection: "close" }).end("MQTT is spoken here by WebSocket alone.\n");
  });
  const webSockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxPacketBytes,
    handleProtocols: (offered) => subprotocols.find((name) => offered.has(name)) ?? false,
  });
  http.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    socket.destroy();
    onFailed(addresses.get(socket) ?? "", "websocket", error.code ?? error.message);
  });
  http.on("upgrade", (request, socket, head) => {
    const address = addresses.get(socket) ?? "";
    const offered = (request.headers["sec-websocket-protocol"] ?? "").split(/\s*,\s*/);
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    if (!webSocketPaths.includes(path) || !subprotocols.some((name) => offered.includes(name))) {
      socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
      onFailed(address, "websocket", `path ${path} with the subprotocols ${offered.join(", ")}`);
      return;
    }
    webSockets.handleUpgrade(request, socket, head, (webSocket) => accept(streamOf(webSocket), address));
  });
  return (stream: Duplex, address: string) => {
    addresses.set(stream, address);
    http.emit("connection", stream);
  };
}

/** MQTT is in binary frames alone. */
function streamOf(webSocket: WebSocket): Duplex {
  webSocket.on("message", (_, isBinary) => {
    if (!isBinary) webSocket.close(1003);
  });
  return createWebSocketStream(webSocket);
}
