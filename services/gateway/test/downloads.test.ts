import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { firmwareBounds } from "@devmesh/contracts/model/firmware";
import { Problem } from "@devmesh/contracts/rest/problem";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { openTracer } from "@devmesh/service-kit/tracing/open-tracer";
import { eventually } from "@devmesh/testkit/eventually";
import { testLog } from "@devmesh/testkit/sample-mesh/buses";
import { startTraceCollector } from "@devmesh/testkit/trace-collector";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { RateLimit } from "../src/auth/rate-limit.ts";
import { GatewayEnv } from "../src/env.ts";
import { createDownloads } from "../src/firmware/downloads.ts";
import { RequestRefused } from "../src/http/gateway-errors.ts";
import { content, downloadTicket, endedTicket, firmware } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

const { pieceBytes } = firmwareBounds;
const ticketOf = (nth: number) => `ot_${String(nth).padStart(32, "0")}`;
const pathOf = (ticket: string) => `/api/v2/ota/${ticket}`;
const path = pathOf(downloadTicket);
/** A device has no key. */
const download = (target = path, headers: Record<string, string> = {}, on = mesh) =>
  on.fetch(target, { key: null, headers });
const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());
const reasonOf = async (answer: Response) => Problem.parse(await answer.json()).reason;

/** Opens any ticket, each for an execution of its name; returns how often each was opened. */
function openAny(on = mesh): Map<string, number> {
  const opened = new Map<string, number>();
  on.fakes.jobs.openTicket = async ({ ticket }) => {
    opened.set(ticket, (opened.get(ticket) ?? 0) + 1);
    return { execution_id: ticket, firmware: { ...firmware, id: "pump" } };
  };
  return opened;
}

/** A download whose client does not read on. */
function hold(target = path): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest(`${mesh.url}${target}`, (answer) => resolve(answer.on("error", () => undefined)))
      .on("error", reject)
      .end();
  });
}

describe("a download by a ticket", () => {
  test("is the file, with its SHA-256 as its tag, without a key", async () => {
    const answer = await download();
    expect([answer.status, answer.headers.get("etag"), answer.headers.get("accept-ranges")]).toEqual([
      200,
      `"${firmware.sha256}"`,
      "bytes",
    ]);
    expect((await bytesOf(answer)).equals(content)).toBe(true);
  });

  test.each([
    [{ range: "bytes=5-9" }, 206, 5, 10],
    [{ range: `bytes=${pieceBytes - 1}-` }, 206, pieceBytes - 1, content.length],
    [{ range: "bytes=5-9", "if-range": `"${firmware.sha256}"` }, 206, 5, 10],
    [{ range: "bytes=5-9", "if-range": '"another"' }, 200, 0, content.length],
    [{ range: "bytes=0-1,5-9" }, 200, 0, content.length],
  ])("with %j is %i", async (headers, status, start, end) => {
    const answer = await download(path, headers as Record<string, string>);
    expect(answer.status).toBe(status);
    expect((await bytesOf(answer)).equals(content.subarray(start, end))).toBe(true);
  });

  test("has the digests of the file, the MD5 where it is known", async () => {
    openAny();
    const digestsOf = ({ headers }: Response) => [headers.get("x-sha256"), headers.get("x-md5")];
    const part = await download(pathOf(ticketOf(7)), { range: "bytes=0-9" });
    expect(digestsOf(part)).toEqual([firmware.sha256, firmware.md5]);
    mesh.fakes.jobs.openTicket = async () => ({ execution_id: "e", firmware: { ...firmware, md5: null } });
    expect(digestsOf(await download(pathOf(ticketOf(104))))).toEqual([firmware.sha256, null]);
  });

  test.each(["?v=1", "?", "?v=1&cache=no&x", "?access_token=mk_x"])(
    "with the query %s is the file",
    async (query) => {
      const answer = await download(path + query);
      expect([answer.status, (await bytesOf(answer)).equals(content)]).toEqual([200, true]);
    },
  );

  test("is not sent again to a device that has it", async () => {
    const answer = await download(path, { "if-none-match": `"${firmware.sha256}"`, range: "bytes=5-9" });
    expect([answer.status, (await bytesOf(answer)).length]).toEqual([304, 0]);
    expect(answer.headers.get("x-md5")).toBe(firmware.md5);
    expect((await download(path, { "if-none-match": '"another"' })).status).toBe(200);
  });

  test("answers HEAD, and a range after the end", async () => {
    const head = await mesh.fetch(path, { method: "HEAD", key: null });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(content.length)]);
    const beyond = await download(path, { range: `bytes=${content.length}-` });
    expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, `bytes */${content.length}`]);
  });

  test.each([
    ["Mongoose OS", "HTTP/1.1", "Content-Length: 0\r\nX-MGOS-Device-ID: pump-1 020000000001"],
    [
      "HTTPUpdate of Arduino",
      "HTTP/1.0",
      "User-Agent: ESP32-http-Update\r\nCache-Control: no-cache\r\nx-ESP32-mode: sketch",
    ],
  ])("is answered with its length, and not in chunks, as %s asks for it", async (_, protocol, headers) => {
    const { host, hostname, port } = new URL(mesh.url);
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    socket.write(`GET ${path} ${protocol}\r\nHost: ${host}\r\n${headers}\r\nConnection: close\r\n\r\n`);
    const answer = await buffer(socket);
    const end = answer.indexOf("\r\n\r\n");
    const head = answer.subarray(0, end).toString();
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(head).toMatch(new RegExp(`^Content-Length: ${content.length}$`, "im"));
    expect(head).not.toMatch(/^Transfer-Encoding:/im);
    expect(answer.subarray(end + 4).equals(content)).toBe(true);
  });

  test.each([
    ["was never made", ticketOf(999), "ticket_unknown"],
    ["is no ticket at all", "mk_00000000000000000000000000000001", "ticket_unknown"],
    ["is too long", "x".repeat(200), "ticket_unknown"],
    ["has ended", endedTicket, "ticket_ended"],
  ])("whose ticket %s is refused", async (_, ticket, reason) => {
    const answer = await download(pathOf(ticket));
    expect([answer.status, await reasonOf(answer)]).toEqual([404, reason]);
  });

  test("in many ranges opens its ticket once a second, and an ended one opens nothing soon after", async () => {
    const opened = openAny();
    const ticket = ticketOf(100);
    const ask = () => download(pathOf(ticket), { range: "bytes=0-0" });
    await (await ask()).arrayBuffer();
    for (let nth = 0; nth < 10; nth++) await (await ask()).arrayBuffer();
    expect(opened.get(ticket)).toBeLessThan(11);
    mesh.fakes.jobs.openTicket = async (_, context) => context.fail("ticket_ended");
    await eventually(async () => (await ask()).status === 404);
  });

  test("is reported at tenths, also in ranges, and is not held by a report", async () => {
    const notes: number[] = [];
    let isHeld = true;
    mesh.fakes.jobs.noteDownload = async ({ bytes }) => {
      notes.push(bytes);
      while (isHeld) await new Promise((resolve) => setTimeout(resolve, 5));
      return {};
    };
    expect((await bytesOf(await download())).length).toBe(content.length);
    isHeld = false;
    // The first note was under way while the others came, of which the last one is sent.
    await eventually(() => notes.includes(content.length));
    expect(notes.length).toBeLessThanOrEqual(10);
    notes.length = 0;
    const third = Math.floor(content.length / 3);
    for (let start = 0; start < content.length; start += 10_000) {
      const range = `bytes=${start}-${Math.min(start + 10_000, content.length) - 1}`;
      await (await download(path, { range })).arrayBuffer();
      if (start > third) break;
    }
    await eventually(() => notes.length === 3);
    expect(notes.map((bytes) => Math.floor((10 * bytes) / content.length))).toEqual([1, 2, 3]);
  });

  test("goes on where reports fail, and is cut where its update has ended", async () => {
    mesh.fakes.jobs.noteDownload = async () => {
      throw new Error("no");
    };
    expect((await bytesOf(await download())).equals(content)).toBe(true);
    // Nothing of a large file waits in the connection.
    const large = { id: "pump", sha256: "9".repeat(64), size: 200 * content.length };
    mesh.fakes.jobs.openTicket = async () => ({ execution_id: "large", firmware: large });
    mesh.fakes.jobs.readContent = async () => ({ data: Buffer.alloc(pieceBytes).toString("base64") });
    mesh.fakes.jobs.noteDownload = async (_, context) => context.fail("ticket_ended");
    const answer = await download(pathOf(ticketOf(101)));
    await expect(answer.arrayBuffer()).rejects.toThrow();
  });

  test("has one other of its ticket beside it", async () => {
    const large = { id: "pump", sha256: "8".repeat(64), size: 200 * content.length };
    mesh.fakes.jobs.openTicket = async ({ ticket }) => ({ execution_id: ticket, firmware: large });
    mesh.fakes.jobs.readContent = async () => ({ data: Buffer.alloc(pieceBytes).toString("base64") });
    const target = pathOf(ticketOf(102));
    const [first, second] = await Promise.all([hold(target), hold(target)]);
    const refused = await download(target, { range: "bytes=0-0" });
    expect([refused.status, await reasonOf(refused), refused.headers.get("retry-after")]).toEqual([
      429,
      "too_many_downloads",
      "5",
    ]);
    expect((await download(pathOf(ticketOf(103)), { range: "bytes=0-0" })).status).toBe(206);
    first.destroy();
    await eventually(async () => (await download(target, { range: "bytes=0-0" })).status === 206);
    second.destroy();
  });
});

test("a gateway sends a thousand files at a time, and the next one once one of them has ended", async () => {
  const clock = new ManualClock();
  const rateOf = (name: string) => new RateLimit({ name, perSecond: 1, maxBuckets: 2_000, clock });
  const { answer } = createDownloads({
    jobs: {
      openTicket: async ({ ticket }) => ({ execution_id: ticket, firmware }),
      noteDownload: async () => ({}),
    },
    answerContent: () => ({ status: 200, headers: {} }),
    attempts: rateOf("address"),
    rate: rateOf("ticket"),
    clock,
  });
  using call = createCallContext({ timeoutMs: 60_000, clock });
  const ask = (nth: number) =>
    answer({ ticket: ticketOf(nth), address: "198.51.100.1", method: "GET", header: () => undefined, call });
  const sent = await Promise.all(Array.from({ length: 1_000 }, (_, nth) => ask(nth)));
  await expect(ask(1_000)).rejects.toThrow(RequestRefused);
  sent[0]?.release?.();
  expect((await ask(1_001)).status).toBe(200);
});

test("who guesses tickets is refused before a service is asked, and holders of tickets at that address are not", async () => {
  await using own = await startFixture({ clock: new ManualClock(), env: { RATE_ANONYMOUS: "0.5" } });
  let opened = 0;
  own.fakes.jobs.openTicket = async ({ ticket }, context) => {
    opened++;
    if (ticket !== downloadTicket) return context.fail("ticket_unknown");
    return { execution_id: "e", firmware: { id: "pump", sha256: firmware.sha256, size: firmware.size } };
  };
  expect((await download(path, { range: "bytes=0-0" }, own)).status).toBe(206);
  const guess = (nth: number) => download(pathOf(ticketOf(200 + nth)), {}, own);
  const statuses: number[] = [];
  for (let nth = 0; nth < 5; nth++) {
    statuses.push((await guess(nth)).status);
    // Its ticket is open while it goes on asking.
    await download(path, { range: "bytes=0-0" }, own);
  }
  expect(statuses.slice(0, 2)).toEqual([404, 429]);
  const refused = await guess(9);
  expect([refused.status, await reasonOf(refused), refused.headers.has("retry-after")]).toEqual([
    429,
    "rate_limited",
    true,
  ]);
  expect(opened).toBeLessThanOrEqual(4);
});

test("a holder of a ticket has the rate of a key", async () => {
  await using own = await startFixture({ clock: new ManualClock(), env: { RATE_KEY: "0.5" } });
  const answer = await download(path, { range: "bytes=0-0" }, own);
  expect([answer.status, answer.headers.get("ratelimit-policy")]).toEqual([206, '"ticket";q=1;w=2']);
  expect((await download(path, { range: "bytes=0-0" }, own)).status).toBe(429);
});

test("a ticket is in no log, metric, span or problem, whatever becomes of its request", async () => {
  await using collector = await startTraceCollector();
  const env = GatewayEnv.parse({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const tracer = await openTracer(env, "gateway", testLog);
  if (tracer === undefined) throw new Error("no tracer was opened");
  await using own = await startFixture({ tracer });
  const answers: string[] = [];
  const ask = async (ticket: string, method = "GET", query = "") => {
    const answer = await own.fetch(`${pathOf(ticket)}${query}`, { method, key: null });
    answers.push(JSON.stringify([...answer.headers]));
    if (answer.status !== 200) answers.push(await answer.text());
    else await answer.arrayBuffer();
    return answer.status;
  };
  expect(await ask(downloadTicket)).toBe(200);
  expect(await ask(downloadTicket, "PUT")).toBe(405);
  expect(await ask(downloadTicket, "GET", "?x=1&x=2")).toBe(400);
  expect(await ask(`${downloadTicket}/x`)).toBe(404);
  expect(await ask(`${downloadTicket}x`)).toBe(404);
  expect(await ask(endedTicket)).toBe(404);
  own.fakes.jobs.openTicket = async () => {
    throw new Error("broken");
  };
  expect(await ask(ticketOf(300))).toBe(500);
  own.fakes.jobs.openTicket = async () => ({ execution_id: 7 }) as never;
  expect(await ask(ticketOf(301))).toBe(500);
  await tracer.close();
  const written = [own.log(), await own.metrics.registry.metrics(), collector.received(), ...answers].join(
    "\n",
  );
  expect(written).toContain("/api/v2/ota/:ticket");
  expect(written).not.toMatch(/ot_0{16}/);
});
