import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { Problem } from "@devmesh/contracts/rest/problem";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import {
  type NotificationClient,
  openEventStream,
  openWebSocket,
  StreamRefused,
} from "@devmesh/testkit/notification-client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const at = "2026-01-01T00:00:00.000Z";
const notify = "/api/v2/notify";
const own = "/api/v2/m/device/notify";
const key = secrets.master;

/** The refusal of a stream, asked for in both ways; both must be the same. */
async function refusal(mesh: Fixture, path: string, presented: string | null, headers = {}) {
  const ask = async (open: typeof openWebSocket | typeof openEventStream) => {
    const refused = await open(mesh.url, path, { key: presented, headers }).then(
      (client) => client.leave(),
      (error: unknown) => error,
    );
    if (!(refused instanceof StreamRefused)) throw new Error("not refused", { cause: refused });
    Problem.parse(refused.problem);
    expect(refused.headers["content-type"]).toBe("application/problem+json");
    return [refused.status, refused.problem.reason];
  };
  const overWebSocket = await ask(openWebSocket);
  expect(await ask(openEventStream)).toEqual(overWebSocket);
  return overWebSocket;
}

describe("a stream", () => {
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture({ env: { NOTIFY_MASTER_LISTENERS: "3", NOTIFY_KEY_LISTENERS: "1" } });
  });
  afterEach(() => mesh.fakes.reset());
  afterAll(async () => {
    await mesh[Symbol.asyncDispose]();
  });

  test("is refused, before it begins, like any other request", async () => {
    expect(await refusal(mesh, notify, null)).toEqual([401, "key_missing"]);
    expect(await refusal(mesh, notify, "mk_nobody")).toEqual([401, "key_invalid"]);
    expect(await refusal(mesh, notify, secrets.public_key)).toEqual([403, "wrong_key_kind"]);
    expect(await refusal(mesh, own, secrets.device_key)).toEqual([403, "wrong_key_kind"]);
    expect(await refusal(mesh, `${notify}?access_token=other`, key)).toEqual([400, "key_ambiguous"]);
    expect(await refusal(mesh, `${notify}?after=-1`, key)).toEqual([400, "invalid_request"]);
    expect(await refusal(mesh, `${notify}?data=yes`, key)).toEqual([400, "invalid_request"]);
    expect(await refusal(mesh, `${notify}?device=a.b`, key)).toEqual([400, "invalid_request"]);
    expect(await refusal(mesh, `${notify}?device=`, key)).toEqual([400, "invalid_request"]);
    expect(await refusal(mesh, `${notify}?device=pump&account=1`, key)).toEqual([400, "invalid_request"]);
    expect(await refusal(mesh, notify, key, { "last-event-id": "x" })).toEqual([400, "invalid_request"]);
    expect(await refusal(mesh, "/api/v2/nothing", key)).toEqual([404, "route_not_found"]);
  });

  test("takes the key out of the query, too, and shows it nowhere", async () => {
    const client = await openWebSocket(mesh.url, `${notify}?access_token=${key}`, { key: null });
    await mesh.deviceEvents.online({ id: "pump", timestamp: at });
    await client.heard(1);
    client.leave();
    await client.ended;
    for (const secret of Object.values(secrets)) expect(mesh.log()).not.toContain(secret);
    expect(mesh.log()).toContain('"status":101');
    expect(await mesh.metrics.registry.metrics()).not.toContain(key);
  });

  test("that is asked for as neither form is 406, and a HEAD answers the headers of a GET", async () => {
    const plain = await mesh.fetch(notify);
    expect([plain.status, ((await plain.json()) as Problem).reason]).toEqual([406, "not_acceptable"]);
    const head = await mesh.fetch(notify, { method: "HEAD", headers: { accept: "text/event-stream" } });
    expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  });

  test("needs a proper handshake", async () => {
    const { hostname, port } = new URL(mesh.url);
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(port), hostname);
      let text = "";
      socket.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      socket.on("close", () => resolve(text));
      socket.write(
        `GET ${notify} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n\r\n`,
      );
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"handshake_invalid"');
    expect(answer.toLowerCase()).toContain("sec-websocket-version: 13");
  });

  test("is given to so many listeners of a key, and again when one has left", async () => {
    const clients = await Promise.all([1, 2, 3].map(() => openWebSocket(mesh.url, notify, { key })));
    expect(await refusal(mesh, notify, key)).toEqual([429, "too_many_listeners"]);
    const other = await openEventStream(mesh.url, own, { key: secrets.public_key });
    expect(await refusal(mesh, own, secrets.public_key)).toEqual([429, "too_many_listeners"]);
    clients[0]?.leave();
    const next = await eventually(() => openEventStream(mesh.url, notify, { key }));
    for (const client of [...clients, other, next]) client.leave();
  });

  test.each(["websocket", "event_stream"] as const)("over %s ends with its key", async (format) => {
    const open = async () => {
      if (format === "websocket") return openWebSocket(mesh.url, notify, { key });
      return openEventStream(mesh.url, notify, { key });
    };
    const client: NotificationClient = await eventually(open);
    await mesh.events.revoked({ key_ids: ["someone-else"] });
    await mesh.deviceEvents.online({ id: "pump", timestamp: at });
    await client.heard(1);
    await mesh.events.revoked({ key_ids: ["id-master"] });
    expect(await client.ended).toEqual([format === "websocket" ? 1008 : "end", "the key has ended"]);
  });

  test("ends when its key expires", async () => {
    const first = mesh.fakes.keys.verify;
    mesh.fakes.keys.verify = async (input, context) => ({
      ...(await first(input, context)),
      expires_at: new Date(Date.now() + 800).toISOString(),
    });
    await mesh.events.revoked({ key_ids: ["id-master"] });
    const client = await eventually(() => openWebSocket(mesh.url, notify, { key }));
    expect(await client.ended).toEqual([1008, "the key has ended"]);
  });

  test("of a key whose revocation was missed ends when it is verified again", async () => {
    const clock = new ManualClock();
    await using other = await startFixture({ clock, env: { KEY_CACHE_MS: "60000" } });
    const client = await openWebSocket(other.url, notify, { key });
    other.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
    // A key in use is verified before its time is over.
    await clock.advance(49_000);
    await other.deviceEvents.online({ id: "pump", timestamp: at });
    await client.heard(1);
    // The verification takes real time, so the clock advances until its answer has arrived.
    const open = Symbol("open");
    await eventually(async () => {
      await clock.advance(500);
      return (await Promise.race([client.ended, open])) !== open;
    });
    expect(await client.ended).toEqual([1008, "the key has ended"]);
  });

  test("ends with its key also when strangers at its address have used up their attempts", async () => {
    await using other = await startFixture({ env: { RATE_ANONYMOUS: "0.5" } });
    const client = await openWebSocket(other.url, notify, { key });
    const guess = () => other.fetch(notify, { key: null, headers: { authorization: "Bearer mk_nobody" } });
    await eventually(async () => (await guess()).status === 429);
    other.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
    await other.server.kill();
    await other.server.restart();
    await eventually(() => other.services.connected);
    let over = false;
    void client.ended.then(() => {
      over = true;
    });
    await eventually(async () => (await guess()).status === 429 && over);
    expect(await client.ended).toEqual([1008, "the key has ended"]);
  });

  test("beats every 20 s", async () => {
    const clock = new ManualClock();
    await using other = await startFixture({ clock });
    const websocket = await openWebSocket(other.url, notify, { key });
    const events = await openEventStream(other.url, notify, { key });
    let pings = 0;
    websocket.websocket.on("ping", () => pings++);
    for (const beats of [1, 2]) {
      await clock.advance(20_000);
      await eventually(() => pings === beats && events.comments.length === beats);
    }
    websocket.leave();
    events.leave();
  });

  test("of a client that does not answer the beat is ended", async () => {
    const clock = new ManualClock();
    await using other = await startFixture({ clock });
    const client = await openWebSocket(other.url, notify, { key });
    client.websocket.pause();
    await clock.advance(20_000);
    await clock.advance(20_000);
    client.websocket.resume();
    expect((await client.ended)[0]).toBe(1006);
  });
});

test("a client that reads too slowly is closed with 1013 while others go on", async () => {
  await using mesh = await startFixture({ env: { NOTIFY_BUFFER_BYTES: "65536" } });
  const slow = await openWebSocket(mesh.url, notify, { key });
  const quick = await openWebSocket(mesh.url, notify, { key });
  slow.websocket.pause();
  const payload = "x".repeat(200_000);
  const counted = async () =>
    await mesh.metrics.registry.getSingleMetricAsString("devmesh_notify_slow_readers_total");
  let sent = 0;
  while (!(await counted()).includes("devmesh_notify_slow_readers_total 1")) {
    await mesh.rpcEvents.rpc_out({ id: "pump", timestamp: at, name: "load", payload });
    await quick.heard(++sent);
  }
  slow.websocket.resume();
  expect(await slow.ended).toEqual([1013, "too slow"]);
  expect(slow.frames.length).toBeLessThan(sent);
  await mesh.deviceEvents.online({ id: "pump", timestamp: at });
  expect((await quick.heard(sent + 1)).at(-1)?.name).toBe("online");
  quick.leave();
});

test("a gateway that stops says so to its listeners, and takes no new ones", async () => {
  await using mesh = await startFixture({ env: { LAME_DUCK_MS: "0" } });
  const websocket = await openWebSocket(mesh.url, notify, { key });
  const events = await openEventStream(mesh.url, notify, { key });
  await mesh.stopGateway();
  expect(await websocket.ended).toEqual([1012, "the gateway stops"]);
  expect(await events.ended).toEqual(["end", "the gateway stops"]);
  await expect(openWebSocket(mesh.url, notify, { key })).rejects.toThrow();
});

test("a gateway stops in time also when a listener does not read its farewell", async () => {
  await using mesh = await startFixture({ env: { DRAIN_MS: "300" } });
  const client = await openWebSocket(mesh.url, notify, { key });
  client.websocket.pause();
  await mesh.stopGateway();
  client.websocket.resume();
  await client.ended;
});

test("a thousand listeners cost one consumer of the stream of events", async () => {
  await using mesh = await startFixture({ env: { NOTIFY_MASTER_LISTENERS: "1000" } });
  const clients = await Promise.all(
    Array.from({ length: 1_000 }, () => openWebSocket(mesh.url, notify, { key })),
  );
  const manager = await streamManager(mesh.services);
  const { state } = await manager.streams.info("EVENTS");
  expect(state.consumer_count).toBe(1);
  await mesh.deviceEvents.online({ id: "pump", timestamp: at });
  for (const client of clients) expect((await client.heard(1))[0]?.name).toBe("online");
  for (const client of clients) client.leave();
});

test("a client that vanishes while its key is verified takes no place and harms nobody", async () => {
  await using mesh = await startFixture({ env: { NOTIFY_MASTER_LISTENERS: "1" } });
  const verify = mesh.fakes.keys.verify;
  const held: (() => void)[] = [];
  mesh.fakes.keys.verify = async (input, context) => {
    await new Promise<void>((resolve) => held.push(resolve));
    return verify(input, context);
  };
  const { hostname, port } = new URL(mesh.url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `GET ${notify} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
  );
  await eventually(() => held.length > 0);
  socket.resetAndDestroy();
  await eventually(() => mesh.log().includes('"aborted":true'));
  held[0]?.();
  mesh.fakes.keys.verify = verify;
  const client = await openWebSocket(mesh.url, notify, { key });
  client.leave();
});

/** A connection on which a GET has been sent, and that stays open on the client's side. */
function ask(url: string, path: string, headers: readonly string[]): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  // It may be ended at once, with what was sent on its way.
  socket.on("error", () => undefined);
  socket.write([`GET ${path} HTTP/1.1`, "Host: x", ...headers, "", ""].join("\r\n"));
  return socket;
}

const bearer = `Authorization: Bearer ${key}`;
const handshake = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
];

test("a handshake that fails, for whatever reason, takes no place", async () => {
  await using mesh = await startFixture({ env: { NOTIFY_MASTER_LISTENERS: "1" } });
  for (let times = 0; times < 2; times++) {
    const malformed = ask(mesh.url, notify, [...handshake, bearer, "Sec-WebSocket-Protocol: a,,b"]);
    expect(await text(malformed)).toMatch(/^HTTP\/1\.1 400 /);
    malformed.destroy();
    const half = ask(mesh.url, notify, [...handshake, bearer]).end();
    await text(half);
    half.destroy();
  }
  const client = await openWebSocket(mesh.url, notify, { key });
  client.leave();
});

test("a gateway stops in time also when a client that was refused a WebSocket stays", async () => {
  await using mesh = await startFixture({ env: { DRAIN_MS: "300" } });
  const refused = ask(mesh.url, notify, handshake);
  const [answer] = (await once(refused, "data")) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 401 /);
  await mesh.stopGateway();
  refused.destroy();
});

test("a gateway stops in time also when a handshake waits for a service", async () => {
  await using mesh = await startFixture({ env: { DRAIN_MS: "300" } });
  const held = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const verify = mesh.fakes.keys.verify;
  mesh.fakes.keys.verify = async (input, context) => {
    asked.resolve();
    await held.promise;
    return verify(input, context);
  };
  const waiting = ask(mesh.url, notify, [...handshake, bearer]);
  await asked.promise;
  await mesh.stopGateway();
  held.resolve();
  waiting.destroy();
});

test("pings of a client that reads nothing are not all answered", async () => {
  await using mesh = await startFixture();
  const client = await openWebSocket(mesh.url, notify, { key });
  client.websocket.pause();
  const pings = 150_000;
  const load = Buffer.alloc(125);
  for (let sent = 0; sent < pings; sent++) {
    const done = Promise.withResolvers<void>();
    client.websocket.ping(load, true, () => done.resolve());
    if (sent % 1_000 === 0) await done.promise;
  }
  let pongs = 0;
  client.websocket.on("pong", () => pongs++);
  client.websocket.resume();
  await mesh.deviceEvents.online({ id: "pump", timestamp: at });
  await client.heard(1);
  expect(pongs).toBeGreaterThan(0);
  expect(pongs).toBeLessThan(pings);
  client.leave();
});

test.each([
  ["over a WebSocket", handshake],
  ["as an event stream", ["Accept: text/event-stream"]],
])(
  "clients that take nothing of what they missed are closed, %s, and the next one is given it",
  async (_, headers) => {
    const clock = new ManualClock();
    await using mesh = await startFixture({ clock });
    const payload = "x".repeat(400_000);
    for (let n = 0; n < 60; n++)
      await mesh.rpcEvents.rpc_out({ id: "pump", timestamp: at, name: "load", payload });
    // One that has no events in memory.
    const url = await mesh.startAnother();
    const stuck = Array.from({ length: 16 }, () =>
      ask(url, `${notify}?after=0`, [...headers, bearer]).pause(),
    );
    const client = await openWebSocket(url, `${notify}?after=59`, { key });
    await eventually(async () => {
      await clock.advance(5_000);
      return client.frames.length === 1;
    });
    for (const socket of stuck) socket.destroy();
    client.leave();
  },
);
