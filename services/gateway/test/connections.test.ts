import { once } from "node:events";
import { request as httpRequest, IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { systemClock } from "@devmesh/service-kit/clock";
import { createMetrics } from "@devmesh/service-kit/metrics";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import { keepsOwnTime } from "../src/http/connection.ts";
import { ConnectionLimit } from "../src/http/connection-limit.ts";
import { createHttpMetrics } from "../src/http/http-metrics.ts";
import { startHttpServer } from "../src/http/http-server.ts";
import { downloadTicket, firmware, secrets } from "./fakes.ts";
import { type Fixture, type FixtureOptions, startFixture } from "./gateway-fixture.ts";

const device = "/api/v2/devices/pump";
const bearer = `Authorization: Bearer ${secrets.master}`;
const handshake = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
];

function ask(path: string, headers: readonly string[] = [], method = "GET"): string {
  return [`${method} ${path} HTTP/1.1`, "Host: gateway", ...headers, "", ""].join("\r\n");
}

interface Client {
  readonly socket: Socket;
  /** What has come back. */
  answer: string;
  closed: boolean;
}

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

async function open({ url }: Pick<Fixture, "url">, allowHalfOpen = false): Promise<Client> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ port: Number(port), host, allowHalfOpen });
  sockets.push(socket);
  const client: Client = { socket, answer: "", closed: false };
  socket.on("data", (bytes) => {
    client.answer += bytes.toString("latin1");
  });
  socket.on("close", () => {
    client.closed = true;
  });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return client;
}

/** Statuses of the answers so far. */
function statuses({ answer }: Client): string[] {
  return [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status = ""]) => status);
}

/** Reads of devices that wait until they are answered; `most` is how many waited at a time. */
function holdReads({ fakes }: Fixture) {
  const held: (() => void)[] = [];
  const seen = { most: 0, begun: 0 };
  fakes.devices.readDevice = async ({ id }) => {
    seen.begun++;
    await new Promise<void>((resolve) => {
      held.push(resolve);
      seen.most = Math.max(seen.most, held.length);
    });
    return { etag: '"1"', device: fakeDevice(id) as never };
  };
  return { held, seen };
}

async function metric({ metrics }: Fixture, name: string): Promise<number> {
  const line = (await metrics.registry.metrics()).split("\n").find((line) => line.startsWith(`${name} `));
  return Number(line?.split(" ")[1] ?? Number.NaN);
}

describe("requests of one connection", () => {
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture();
  });
  afterEach(() => mesh.fakes.reset());
  afterAll(async () => mesh[Symbol.asyncDispose]());

  test("that arrive together begin one after the other", async () => {
    const { held, seen } = holdReads(mesh);
    const client = await open(mesh);
    client.socket.write(
      Array.from({ length: 100 }, (_, nth) => ask(`/api/v2/devices/d${nth}`, [bearer])).join(""),
    );
    for (let nth = 1; nth <= 100; nth++) {
      await eventually(() => held.length > 0);
      expect(seen.begun).toBe(nth);
      held.pop()?.();
    }
    await eventually(() => statuses(client).length === 100);
    expect(new Set(statuses(client))).toEqual(new Set(["200"]));
    expect([...client.answer.matchAll(/"id":"d(\d+)"/g)].map(([, nth]) => Number(nth))).toEqual(
      Array.from({ length: 100 }, (_, nth) => nth),
    );
    expect(seen.most).toBe(1);
  });

  test("hold up no other connection", async () => {
    const [greedy, other] = [await open(mesh), await open(mesh)];
    const ended = new Promise<number>((resolve) => {
      other.socket.once("data", () => resolve(statuses(greedy).length));
    });
    greedy.socket.write(ask("/x").repeat(500));
    other.socket.write(ask("/y"));
    expect(await ended).toBeLessThan(100);
    await eventually(() => statuses(greedy).length === 500);
  });

  test.each([
    [7_001, 200_000, "400"],
    [997, 2_000, "400"],
    [61, 100, "200"],
    [5, 100, "200"],
    [1, 10, "200"],
  ])("may have bodies, and come in pieces of %i bytes", async (pieceBytes, nameBytes, status) => {
    const client = await open(mesh);
    const post = (name: string) => {
      const body = JSON.stringify({ name });
      return `${ask(device, [bearer, `Content-Length: ${body.length}`], "POST")}${body}`;
    };
    const chunked = `${ask(device, [bearer, "Transfer-Encoding: chunked"], "POST")}2\r\n{}\r\n0\r\n\r\n`;
    const sent = [post("a"), post("x".repeat(nameBytes)), chunked, post("b"), ask(device, [bearer])].join("");
    client.socket.setNoDelay();
    for (let at = 0; at < sent.length; at += pieceBytes) {
      client.socket.write(sent.slice(at, at + pieceBytes));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await eventually(() => statuses(client).length === 5);
    expect(statuses(client)).toEqual(["200", status, "200", "200", "200"]);
  });

  test("are followed by a WebSocket once they are answered", async () => {
    const { held } = holdReads(mesh);
    const client = await open(mesh);
    client.socket.write(ask(device, [bearer]) + ask("/api/v2/notify", [bearer, ...handshake]));
    await eventually(() => held.length > 0);
    held.pop()?.();
    await eventually(() => statuses(client).length === 2);
    expect(statuses(client)).toEqual(["200", "101"]);
    expect((await mesh.fetch("/api/v2/mqtt")).status).toBe(200);
  });

  test("are answered before what follows is refused", async () => {
    const { held } = holdReads(mesh);
    const client = await open(mesh);
    client.socket.write(`${ask(device, [bearer])}NONSENSE\r\n\r\n`);
    await eventually(() => held.length > 0);
    held.pop()?.();
    await eventually(() => client.closed);
    expect(statuses(client)).toEqual(["200", "400"]);
  });

  test("are forgotten when their client has gone", async () => {
    const { held, seen } = holdReads(mesh);
    const client = await open(mesh);
    client.socket.write(ask(device, [bearer]).repeat(20));
    await eventually(() => held.length > 0);
    client.socket.resetAndDestroy();
    held.pop()?.();
    await eventually(async () => (await metric(mesh, "devmesh_http_requests_running")) === 0);
    expect(seen.begun).toBe(1);
  });
});

describe("an address without tokens", () => {
  const start = (env: FixtureOptions["env"]) =>
    startFixture({ clock: new ManualClock(), env: { RATE_ANONYMOUS: "1", ...env } });
  const count = (mesh: Fixture) => metric(mesh, "devmesh_http_requests_refused_total");

  test("is refused before its request is looked at, and its connection closed", async () => {
    await using mesh = await start({ CORS_ORIGINS: "https://app.example.com" });
    const client = await open(mesh);
    client.socket.write(
      ask("/x").repeat(3) + ask("/x", ["Origin: https://app.example.com", "X-Request-Id: mine"]).repeat(2),
    );
    await eventually(() => client.closed);
    expect(statuses(client)).toEqual(["404", "404", "429"]);
    const [, refused = ""] = client.answer.split("HTTP/1.1 429 ");
    const again = await mesh.fetch("/x", {
      key: null,
      headers: { origin: "https://app.example.com", "x-request-id": "mine" },
    });
    expect(refused).toMatch(/^connection: close\r$/im);
    expect([again.status, Object.fromEntries(again.headers)]).toMatchObject([
      429,
      {
        "content-type": "application/problem+json",
        "retry-after": "1",
        ratelimit: '"address";r=0;t=2',
        "ratelimit-policy": '"address";q=2;w=2',
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-request-id": "mine",
        "access-control-allow-origin": "https://app.example.com",
        connection: "close",
      },
    ]);
    expect(await again.json()).toMatchObject({ status: 429, reason: "rate_limited", request_id: "mine" });
    const head = await mesh.fetch("/x", { key: null, method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([429, ""]);
    expect(await count(mesh)).toBe(3);
    expect(mesh.log().match(/"status":404/g)).toHaveLength(2);
    expect(mesh.log()).not.toContain('"status":429');
  });

  test("still has known keys and open tickets served, and no other", async () => {
    await using mesh = await start({});
    const ticket = `/api/v2/ota/${downloadTicket}`;
    const head = async (path: string) => (await mesh.fetch(path, { key: null, method: "HEAD" })).status;
    expect((await mesh.fetch(device)).status).toBe(200);
    expect(await head(ticket)).toBe(200);
    expect([await head("/x"), await head("/x"), await head("/x")]).toEqual([404, 404, 429]);
    expect((await mesh.fetch(device)).status).toBe(200);
    expect((await mesh.fetch(`${device}?access_token=${secrets.master}`, { key: null })).status).toBe(200);
    expect(await head(ticket)).toBe(200);
    expect((await mesh.fetch(device, { key: "device_key" })).status).toBe(429);
    expect(await head(`/api/v2/ota/${downloadTicket.replace("7", "9")}`)).toBe(429);
    const ambiguous = `${device}?access_token=${secrets.device_key}`;
    expect((await mesh.fetch(ambiguous)).status).toBe(429);
    expect(await count(mesh)).toBe(4);
  });

  test("keeps the connection of a trusted proxy, which others share", async () => {
    await using mesh = await start({ TRUST_PROXY: "loopback" });
    const client = await open(mesh);
    const from = (address: string) => ask("/x", [`X-Forwarded-For: ${address}`]);
    client.socket.write(from("198.51.100.7").repeat(4) + from("198.51.100.8"));
    await eventually(() => statuses(client).length === 5);
    expect(statuses(client)).toEqual(["404", "404", "429", "429", "404"]);
    expect(client.closed).toBe(false);
  });

  test.each([
    ["GET", "/nothing", 404],
    ["GET", "/api/v2/nothing", 404],
    ["PUT", device, 405],
    ["OPTIONS", device, 204],
    ["GET", "/docs", 200],
    ["GET", "/api/v2/openapi.json", 200],
    ["POST", "/docs", 405],
    ["GET", "/", 302],
    ["GET", "/api/v2/devices/%ff", 400],
  ])("is charged for %s %s", async (method, path, status) => {
    await using mesh = await start({ CORS_ORIGINS: "*", WEB_DIR: "none" });
    const answers = [];
    for (let times = 0; times < 3; times++) answers.push(await mesh.fetch(path, { key: null, method }));
    expect(answers.map((answer) => answer.status)).toEqual([status, status, 429]);
    expect(answers[0]?.headers.get("ratelimit")).toBe('"address";r=1;t=1');
  });
});

describe("open connections", () => {
  test("of an address are bounded: the one that rests for longest makes room, and none that is at work", async () => {
    await using mesh = await startFixture({ env: { HTTP_CONNECTIONS_PER_ADDRESS: "3" } });
    const [first, second, third] = [await open(mesh), await open(mesh), await open(mesh)];
    first.socket.write(ask("/x"));
    await eventually(() => statuses(first).length === 1);
    const { held } = holdReads(mesh);
    const fourth = await open(mesh);
    await eventually(() => second.closed);
    for (const { socket } of [first, third, fourth]) socket.write(ask(device, [bearer]));
    await eventually(() => held.length === 3);
    const fifth = await open(mesh);
    await eventually(() => fifth.closed);
    expect([first, third, fourth].map(({ closed }) => closed)).toEqual([false, false, false]);
    expect(await metric(mesh, 'devmesh_http_connections_closed_total{bound="address"}')).toBe(2);
    expect(await metric(mesh, "devmesh_http_connections")).toBe(3);
    for (const answer of held) answer();
    await eventually(() => statuses(fourth).length === 1);
  });

  test("of a trusted proxy are bounded by the total alone", async () => {
    await using mesh = await startFixture({
      env: { HTTP_CONNECTIONS_PER_ADDRESS: "1", HTTP_CONNECTIONS: "3", TRUST_PROXY: "loopback" },
    });
    const open4 = [await open(mesh), await open(mesh), await open(mesh), await open(mesh)];
    await eventually(() => open4[0]?.closed === true);
    expect(open4.map(({ closed }) => closed)).toEqual([true, false, false, false]);
    expect(await metric(mesh, 'devmesh_http_connections_closed_total{bound="total"}')).toBe(1);
  });

  test("that are streams count until they end", async () => {
    await using mesh = await startFixture({ env: { HTTP_CONNECTIONS_PER_ADDRESS: "2" } });
    const [stream, other] = [await open(mesh), await open(mesh)];
    stream.socket.write(ask("/api/v2/notify", [bearer, ...handshake]));
    await eventually(() => statuses(stream).length === 1);
    const third = await open(mesh);
    await eventually(() => other.closed);
    expect([stream.closed, third.closed]).toEqual([false, false]);
    stream.socket.destroy();
    await eventually(async () => (await metric(mesh, "devmesh_http_connections")) === 1);
  });
});

describe("the body of a request that is answered before its end", () => {
  const clock = new ManualClock();
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture({ clock });
  });
  afterAll(async () => mesh[Symbol.asyncDispose]());

  const megabytes = 1024 * 1024;
  const refused = [
    ["without a key", device, [], "401"],
    ["of an unknown path", "/x", [], "404"],
    ["that is too large", device, [bearer], "413"],
    ["of another type", "/api/v2/firmware/empty/content", [bearer], "415"],
    [
      "of firmware that has one",
      "/api/v2/firmware/pump/content",
      [bearer, "Content-Type: application/octet-stream"],
      "409",
    ],
  ] as const;

  test.each(refused)("%s ends its connection after 64 KB", async (_, path, headers, status) => {
    const client = await open(mesh);
    client.socket.write(ask(path, [...headers, `Content-Length: ${1_000 * megabytes}`], "POST"));
    await eventually(() => client.answer.includes("\r\n\r\n"));
    expect(statuses(client)).toEqual([status]);
    expect(client.answer).toMatch(/^connection: close\r$/im);
    client.socket.write(Buffer.alloc(60_000));
    client.socket.write(Buffer.alloc(20_000));
    await eventually(() => client.closed);
  });

  test("in chunks does, too, and after a second without a byte", async () => {
    const client = await open(mesh, true);
    client.socket.write(`${ask(device, ["Transfer-Encoding: chunked"], "POST")}2\r\n{}\r\n`);
    await eventually(() => statuses(client).length === 1);
    expect(client.closed).toBe(false);
    await eventually(async () => {
      await clock.advance(1_000);
      client.socket.write("x");
      return client.closed;
    });
    expect(statuses(client)).toEqual(["401"]);
  });

  test("that comes with its head leaves the connection open", async () => {
    const client = await open(mesh);
    const body = "x".repeat(2_000);
    client.socket.write(
      `${ask(device, [`Content-Length: ${body.length}`], "POST")}${body}${ask(device, [bearer])}`,
    );
    await eventually(() => statuses(client).length === 2);
    expect(statuses(client)).toEqual(["401", "200"]);
  });

  test("an upload has 15 minutes, and is answered before its connection ends", async () => {
    const client = await open(mesh);
    const headers = [bearer, "Content-Type: application/octet-stream", "Content-Length: 10"];
    let reading = false;
    mesh.fakes.jobs.readFirmware = async ({ id }) => {
      reading = true;
      return { ...firmware, id, size: 10, ready: false };
    };
    client.socket.write(`${ask("/api/v2/firmware/empty/content", headers, "POST")}12345`);
    await eventually(() => reading);
    await clock.advance(14 * 60_000);
    expect(client.answer).toBe("");
    await eventually(async () => {
      await clock.advance(60_000);
      return client.closed;
    });
    expect(statuses(client)).toEqual(["408"]);
    expect(client.answer).toContain('"request_incomplete"');
  });
});

test("a request must have arrived in its time, unless its body has a time of its own", async () => {
  const log = pino({ level: "silent" });
  const server = await startHttpServer({
    app: {
      IncomingMessage,
      handle(request, response) {
        if (request.url === "/upload") keepsOwnTime(request);
        request.resume().once("end", () => response.end("whole"));
      },
      cutShort: () => undefined,
    },
    ...{ host: "127.0.0.1", port: 0, socketTimeoutMs: 70_000, lameDuckMs: 0, clock: systemClock, log },
    connectionLimit: new ConnectionLimit({
      ...{ perAddress: 10, total: 10, isProxy: () => false },
      metrics: createHttpMetrics(createMetrics()),
    }),
    requestTimeoutMs: 100,
  });
  try {
    const [upload, other] = [await open(server), await open(server)];
    upload.socket.write(`${ask("/upload", ["Content-Length: 2"], "POST")}1`);
    other.socket.write(`${ask("/other", ["Content-Length: 2"], "POST")}1`);
    await eventually(() => other.closed);
    expect(statuses(other)).toEqual(["408"]);
    upload.socket.write("2");
    await eventually(() => upload.answer.endsWith("whole"));
  } finally {
    await server.stop(0);
  }
});

test("a client that reads while it sends gets the refusal of a large body", async () => {
  await using mesh = await startFixture();
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = httpRequest(`${mesh.url}${device}`, { method: "POST" }, resolve).on("error", reject);
    request.write(Buffer.alloc(50_000));
    request.end(Buffer.alloc(50_000));
  });
  expect(answer.statusCode).toBe(401);
  expect(JSON.parse(await text(answer))).toMatchObject({ reason: "key_missing" });
});
