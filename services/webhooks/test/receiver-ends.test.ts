import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { systemClock } from "@devmesh/service-kit/clock";
import { eventually } from "@devmesh/testkit/eventually";
import { testCertificate } from "@devmesh/testkit/test-certificate";
import { describe, expect, test } from "@jest/globals";
import ipaddr from "ipaddr.js";
import { createGuard } from "../src/requests/guard.ts";
import { createSender, type SenderOptions } from "../src/requests/sender.ts";

const guard = createGuard({ allowed: [ipaddr.parseCIDR("127.0.0.0/8")], ownUrls: [], ownListeners: [] });
const body = JSON.stringify({ text: "x".repeat(1_000) });
const upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
const whole = "HTTP/1.1 204 No Content\r\n\r\n";

/** Behaviour of a receiver with a connection, once a request has arrived. */
type Receive = (socket: Socket) => void;

/** Writes pieces as fast as they are taken. */
const endlessly =
  (first: string, piece: string): Receive =>
  (socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(piece.repeat(1_000)));
    };
    socket.write(first);
    socket.on("drain", write);
    write();
  };
/** Writes a piece every 20 ms. */
const slowly =
  (first: string, piece: string): Receive =>
  (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(piece), 20);
    socket.on("close", () => clearInterval(timer));
  };
const writes =
  (text: string): Receive =>
  (socket) =>
    socket.write(text);
const writesAndEnds =
  (text: string): Receive =>
  (socket) =>
    socket.end(text);
const writesAndResets =
  (text: string): Receive =>
  (socket) => {
    socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 20));
  };

const ok = (status: number) => ({ status, error: null });
const failed = (status: number) => ({ status, error: `status ${status}` });
const no = (error: string) => ({ status: null, error });
const late = no("no end of the answer in 0.4 s");
const closed = no("ECONNRESET");

/** Each way in which an exchange ends by what the receiver does, and the outcome. */
const ends: readonly (readonly [name: string, receive: Receive, outcome: object])[] = [
  ["answers 204", writes(whole), ok(204)],
  ["answers and closes", writesAndEnds(whole), ok(204)],
  ["answers until it closes", writesAndEnds("HTTP/1.1 200 OK\r\n\r\ntext"), ok(200)],
  ["answers in chunks", writes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), ok(200)],
  ["answers 304", writes("HTTP/1.1 304 Not Modified\r\n\r\n"), failed(304)],
  ["answers twice", writes(whole + whole), ok(204)],
  [
    "answers more than it says",
    writes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxyz"),
    no("HPE_INVALID_CONSTANT"),
  ],
  ["answers after 103", writes(`HTTP/1.1 103 Early Hints\r\n\r\n${whole}`), ok(204)],
  ["answers 101 with `Upgrade`", writes(upgraded), failed(101)],
  ["answers 101 with `Upgrade`, and data", endlessly(upgraded, "data"), failed(101)],
  ["answers 101 with `Upgrade`, and closes", writesAndEnds(upgraded), failed(101)],
  ["answers 101 after 100", writes(`HTTP/1.1 100 Continue\r\n\r\n${upgraded}`), failed(101)],
  ["answers 101 without `Upgrade`", writes("HTTP/1.1 101 Switching\r\n\r\n"), failed(101)],
  ["answers 426", writes("HTTP/1.1 426 No\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n"), failed(426)],
  ["answers as to CONNECT", writes("HTTP/1.1 200 Connection Established\r\n\r\n"), late],
  ["closes", writesAndEnds(""), closed],
  ["resets", writesAndResets(""), closed],
  ["closes after 100", writesAndEnds("HTTP/1.1 100 Continue\r\n\r\n"), closed],
  ["closes within its headers", writesAndEnds("HTTP/1.1 200 OK\r\nContent-"), closed],
  ["resets within its headers", writesAndResets("HTTP/1.1 200 OK\r\nContent-"), closed],
  ["closes within its body", writesAndEnds("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), closed],
  ["resets within its body", writesAndResets("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), closed],
  [
    "closes within a chunk",
    writesAndEnds("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nx"),
    closed,
  ],
  ["answers 100 without end", endlessly("", "HTTP/1.1 100 Continue\r\n\r\n"), no("more than 32 answers 1xx")],
  [
    "answers 102 without end",
    endlessly("", "HTTP/1.1 102 Processing\r\n\r\n"),
    no("more than 32 answers 1xx"),
  ],
  ["answers 103 without end", endlessly("", "HTTP/1.1 103 Hints\r\n\r\n"), no("more than 32 answers 1xx")],
  ["answers one 103 and nothing else", writes("HTTP/1.1 103 Hints\r\n\r\n"), late],
  ["sends headers without end", endlessly("HTTP/1.1 200 OK\r\n", "X: y\r\n"), no("HPE_HEADER_OVERFLOW")],
  ["sends one header without end", endlessly("HTTP/1.1 200 OK\r\nX: ", "y"), no("HPE_HEADER_OVERFLOW")],
  ["sends headers slowly", slowly("HTTP/1.1 200 OK\r\n", "X: y\r\n"), late],
  ["sends a body without end", endlessly("HTTP/1.1 200 OK\r\n\r\n", "text"), ok(200)],
  ["sends a failure without end", endlessly("HTTP/1.1 500 No\r\n\r\n", "text"), failed(500)],
  ["sends a body slowly", slowly("HTTP/1.1 200 OK\r\n\r\n", "x"), late],
  [
    "sends chunks slowly",
    slowly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
    late,
  ],
  [
    "sends trailers without end",
    endlessly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"),
    no("HPE_HEADER_OVERFLOW"),
  ],
  [
    "sends an extension of a chunk without end",
    endlessly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "x"),
    no("HPE_CHUNK_EXTENSIONS_OVERFLOW"),
  ],
  [
    "sends a chunk of no size",
    writes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
    no("HPE_INVALID_CHUNK_SIZE"),
  ],
  [
    "says two lengths",
    writes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
    no("HPE_UNEXPECTED_CONTENT_LENGTH"),
  ],
  ["speaks no HTTP", writes("SSH-2.0-OpenSSH_9.6\r\n"), no("HPE_INVALID_CONSTANT")],
  ["answers nothing", () => undefined, late],
  ["answers nothing, and closes its side", (socket) => socket.end(), closed],
  ["reads nothing", (socket) => socket.pause(), late],
];

/** Serves connections with a receiver's behaviour for each of them in turn, the last one for all others. */
async function serve(
  receivers: readonly Receive[],
  { tls, protocol = "http" }: { readonly tls?: TlsOptions; readonly protocol?: "http" | "https" } = {},
) {
  const sockets = new Set<Socket>();
  let connections = 0;
  let requests = 0;
  const answer = (socket: Socket) => {
    const receive = receivers[Math.min(connections++, receivers.length - 1)];
    socket.on("data", (bytes) => {
      // A body may come after its headers.
      const isRequest = bytes.toString("latin1").startsWith("POST ");
      if (isRequest) requests++;
      if (isRequest || bytes[0] === tlsHandshake) receive?.(socket);
    });
  };
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  });
  server
    .on("tlsClientError", () => undefined)
    .on("secureConnection", (socket) => socket.on("error", () => undefined));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `${protocol}://127.0.0.1:${port}/`,
    get counts() {
      return { connections, requests };
    },
    /** Resolves when the client has closed all connections. */
    async closed(): Promise<void> {
      // One that reads nothing does not see it.
      for (const socket of sockets) socket.resume();
      await eventually(() => sockets.size === 0);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function openSender(times?: SenderOptions["times"]) {
  const sender = createSender({ guard, clock: systemClock, ...(times && { times }) });
  return { send: sender.send, [Symbol.dispose]: () => sender.close() };
}
const request = (url: string) => ({ url, body, headers: {} });
/** First byte of a TLS connection. */
const tlsHandshake = 0x16;
const { signal: never } = new AbortController();
const lateTimes = { connectMs: 5_000, answerMs: 400 };

describe("a delivery ends, with an outcome and without its connection, when the receiver", () => {
  test.each(ends)("%s", async (_name, receive, outcome) => {
    await using server = await serve([receive]);
    using sender = openSender(outcome === late ? lateTimes : undefined);
    expect(await sender.send(request(server.url), never)).toMatchObject(outcome);
    sender[Symbol.dispose]();
    await server.closed();
    expect(server.counts).toEqual({ connections: 1, requests: 1 });
  });

  test("refuses connections", async () => {
    using sender = openSender();
    expect(await sender.send(request("http://127.0.0.1:1/"), never)).toMatchObject(no("ECONNREFUSED"));
  });

  test("has a certificate of an unknown authority", async () => {
    await using server = await serve([writes(whole)], { tls: testCertificate, protocol: "https" });
    using sender = openSender();
    expect(await sender.send(request(server.url), never)).toMatchObject(no("DEPTH_ZERO_SELF_SIGNED_CERT"));
    await server.closed();
    expect(server.counts.requests).toBe(0);
  });

  test("speaks no TLS", async () => {
    await using server = await serve([writes(whole)], { protocol: "https" });
    using sender = openSender();
    expect(await sender.send(request(server.url), never)).toMatchObject(no("EPROTO"));
    await server.closed();
  });

  test("closes within the handshake of TLS", async () => {
    await using server = await serve([(socket) => socket.destroy()], { protocol: "https" });
    using sender = openSender();
    expect(await sender.send(request(server.url), never)).toMatchObject(closed);
    await server.closed();
  });

  test("does not go on with the handshake of TLS", async () => {
    await using server = await serve([() => undefined], { protocol: "https" });
    using sender = openSender({ connectMs: 300, answerMs: 15_000 });
    expect(await sender.send(request(server.url), never)).toMatchObject(no("no connection in 0.3 s"));
    await server.closed();
  });
});

describe("a delivery ends at once when the service stops", () => {
  const silent = ends.filter(([, , outcome]) => outcome === late);
  test.each(silent)("and the receiver %s", async (_name, receive) => {
    const stopping = new AbortController();
    await using server = await serve([
      (socket) => {
        receive(socket);
        stopping.abort(new Error("the service stops"));
      },
    ]);
    using sender = openSender();
    expect(await sender.send(request(server.url), stopping.signal)).toMatchObject(no("the service stops"));
    await server.closed();
  });

  test("and has ended before", async () => {
    await using server = await serve([writes(whole)]);
    using sender = openSender();
    const ended = AbortSignal.abort(new Error("the service stops"));
    expect(await sender.send(request(server.url), ended)).toMatchObject(no("the service stops"));
    expect(server.counts).toEqual({ connections: 0, requests: 0 });
  });
});

describe("on a kept connection that the receiver closes", () => {
  /** Answers the first request of a connection, and does something else with those after it. */
  const once204Then = (next: Receive): Receive => {
    let isFirst = true;
    return (socket) => {
      (isFirst ? writes(whole) : next)(socket);
      isFirst = false;
    };
  };

  test.each([
    ["without an answer", writesAndEnds("")],
    ["by a reset", writesAndResets("")],
  ])("%s, a request is repeated at once on a fresh one", async (_name, close) => {
    await using server = await serve([once204Then(close), writes(whole)]);
    using sender = openSender();
    for (let number = 0; number < 2; number++)
      expect(await sender.send(request(server.url), never)).toMatchObject(ok(204));
    expect(server.counts).toEqual({ connections: 2, requests: 3 });
  });

  test("a request is repeated once, not more", async () => {
    await using server = await serve([once204Then(writesAndEnds("")), writesAndEnds("")]);
    using sender = openSender();
    await sender.send(request(server.url), never);
    expect(await sender.send(request(server.url), never)).toMatchObject(closed);
    expect(server.counts).toEqual({ connections: 2, requests: 3 });
  });

  test.each([
    ["within its answer", writesAndEnds("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), closed],
    ["after no HTTP", writes("no HTTP\r\n"), no("HPE_INVALID_CONSTANT")],
  ])("%s, a request is not repeated: the receiver had it", async (_name, close, outcome) => {
    await using server = await serve([once204Then(close), writes(whole)]);
    using sender = openSender();
    await sender.send(request(server.url), never);
    expect(await sender.send(request(server.url), never)).toMatchObject(outcome);
    expect(server.counts).toEqual({ connections: 1, requests: 2 });
  });
});
