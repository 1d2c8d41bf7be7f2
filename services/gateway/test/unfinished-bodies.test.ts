import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { maxBodyBytes } from "../src/http/request-body.ts";
import { UnfinishedBodies } from "../src/http/unfinished-bodies.ts";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const kilobytes = 1024;

describe("bodies that have not arrived whole", () => {
  const limited = (clock = new ManualClock()) => {
    const bodies = new UnfinishedBodies({
      maxBytesPerKey: 100 * kilobytes,
      maxBytes: 250 * kilobytes,
      stallMs: 10_000,
      longestMs: 60_000,
      clock,
    });
    const refused: string[] = [];
    const begin = (key: string, name: string, bytes = 0) => {
      const body = bodies.begin(key, ({ reason }) => refused.push(`${name} ${reason}`));
      body.received(bytes * kilobytes);
      return body;
    };
    return { begin, refused };
  };

  test("beyond the share of their key end the one that grows", () => {
    const { begin, refused } = limited();
    begin("a", "first", 60);
    const second = begin("a", "second", 40);
    begin("b", "other", 90);
    expect(refused).toEqual([]);
    second.received(1);
    expect(refused).toEqual(["second too_many_bodies"]);
    begin("a", "third", 40);
    expect(refused).toHaveLength(1);
  });

  test("count at least 16 KB each, and nothing once they have ended", () => {
    const { begin, refused } = limited();
    const open = Array.from({ length: 6 }, (_, at) => begin("a", `body ${at}`));
    begin("a", "one more");
    expect(refused).toEqual(["one more too_many_bodies"]);
    open[0]?.end();
    open[0]?.end();
    begin("a", "in its place", 16);
    begin("a", "yet another");
    expect(refused.slice(1)).toEqual(["yet another too_many_bodies"]);
  });

  test("end after a minute, however steadily they come", async () => {
    const clock = new ManualClock();
    const { begin, refused } = limited(clock);
    const body = begin("a", "slow");
    const ended = begin("a", "ended");
    ended.end();
    for (let seconds = 5; seconds < 60; seconds += 5) {
      await clock.advance(5_000);
      body.received(1);
    }
    expect(refused).toEqual([]);
    await clock.advance(5_000);
    expect(refused).toEqual(["slow request_incomplete"]);
  });

  test("cost the key that holds most its largest one when the whole is used up", () => {
    const { begin, refused } = limited();
    begin("a", "small", 20);
    begin("a", "large", 80);
    begin("b", "middle", 90);
    begin("c", "c", 60);
    expect(refused).toEqual([]);
    begin("d", "late", 16);
    expect(refused).toEqual(["large too_many_bodies"]);
    begin("d", "later", 70);
    expect(refused.slice(1)).toEqual(["middle too_many_bodies"]);
  });

  test("are refused after ten seconds without a byte", async () => {
    const clock = new ManualClock();
    const { begin, refused } = limited(clock);
    begin("a", "silent", 1);
    const slow = begin("a", "slow", 1);
    await clock.advance(9_000);
    slow.received(1);
    await clock.advance(1_000);
    expect(refused).toEqual(["silent request_incomplete"]);
    await clock.advance(9_000);
    expect(refused).toEqual(["silent request_incomplete", "slow request_incomplete"]);
  });
});

describe("over HTTP", () => {
  const clock = new ManualClock();
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture({ clock });
  });
  const sockets: Socket[] = [];
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await mesh[Symbol.asyncDispose]();
  });

  /** A request with all or a part of its body in one piece, and what came back. */
  async function send(key: keyof typeof secrets, sent: Buffer, length: number) {
    const socket = connect(Number(new URL(mesh.url).port), "127.0.0.1");
    sockets.push(socket);
    const client = { socket, answer: "", closed: false };
    socket.on("data", (bytes) => {
      client.answer += bytes.toString();
    });
    socket.on("close", () => {
      client.closed = true;
    });
    socket.on("error", () => undefined);
    await once(socket, "connect");
    const head = [
      "POST /api/v2/device HTTP/1.1",
      "Host: gateway",
      `Authorization: Bearer ${secrets[key]}`,
      "Content-Type: application/json",
      `Content-Length: ${length}`,
      "",
      "",
    ];
    socket.write(Buffer.concat([Buffer.from(head.join("\r\n")), sent]));
    return client;
  }

  test("one key holds ten of the largest; small ones and other keys are served, and those that stall are closed", async () => {
    const part = Buffer.alloc(524_000, " ");
    const clients = await Promise.all(
      Array.from({ length: 30 }, () => send("device_key", part, maxBodyBytes)),
    );
    const refused = () => clients.filter(({ answer }) => answer !== "");
    await eventually(() => refused().length === 20);
    for (const { answer } of refused()) {
      expect(answer).toMatch(/^HTTP\/1\.1 429 /);
      expect(answer).toMatch(/^retry-after: 5\r$/im);
      expect(answer).toContain('"too_many_bodies"');
    }
    const held = clients.filter(({ answer }) => answer === "");
    const small = await send("device_key", Buffer.from("{}"), 2);
    await eventually(() => small.answer !== "");
    expect(small.answer).toMatch(/^HTTP\/1\.1 200 /);
    const other = await mesh.fetch("/api/v2/devices/pump", { json: { name: "x".repeat(500_000) } });
    expect(await other.json()).toMatchObject({ reason: "invalid_request" });
    expect(refused()).toHaveLength(20);

    await eventually(async () => {
      await clock.advance(10_000);
      return held.every(({ closed }) => closed);
    });
    for (const { answer } of held) {
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
      expect(answer).toMatch(/^connection: close\r$/im);
      expect(answer).toContain('"request_incomplete"');
    }
  });
});
