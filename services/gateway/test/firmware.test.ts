import { once } from "node:events";
import { type ClientRequest, request as httpRequest } from "node:http";
import { jobs } from "@devmesh/contracts/jobs";
import { firmwareBounds } from "@devmesh/contracts/model/firmware";
import { Problem } from "@devmesh/contracts/rest/problem";
import { ServiceError } from "@devmesh/service-kit/errors";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { PieceCache } from "../src/firmware/piece-cache.ts";
import { content, firmware, secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

const { pieceBytes } = firmwareBounds;
const octets = { "content-type": "application/octet-stream" };
const target = "/api/v2/firmware/empty/content";

const reasonOf = async (answer: Response) => Problem.parse(await answer.json()).reason;

const upload = (body: Uint8Array<ArrayBuffer> | ReadableStream, headers: Record<string, string> = octets) =>
  mesh.fetch(target, {
    method: "POST",
    body,
    headers,
    ...(body instanceof ReadableStream && { duplex: "half" }),
  });

/** A request of an upload whose body the test sends. */
function beginUpload(): ClientRequest {
  const headers = { ...octets, authorization: `Bearer ${secrets.master}`, "content-length": content.length };
  return httpRequest(`${mesh.url}${target}`, { method: "POST", headers }).on("error", () => undefined);
}

/** What the service received of uploads, by their ids. */
function recordUploads() {
  const received = new Map<string, string[]>();
  const ended: string[] = [];
  mesh.fakes.jobs.putContent = async ({ upload, number, data }) => {
    const pieces = received.get(upload) ?? [];
    pieces[number] = data;
    received.set(upload, pieces);
    return {};
  };
  mesh.fakes.jobs.endContent = async ({ id, upload }) => {
    ended.push(upload);
    return { ...firmware, id };
  };
  const bytesOf = (upload: string) =>
    Buffer.concat((received.get(upload) ?? []).map((data) => Buffer.from(data, "base64")));
  return { received, ended, bytesOf };
}

describe("an upload", () => {
  test.each([
    ["with a length", () => content],
    [
      "in chunks",
      () =>
        new ReadableStream({
          start(controller) {
            for (let at = 0; at < content.length; at += 1_000)
              controller.enqueue(content.subarray(at, at + 1_000));
            controller.close();
          },
        }),
    ],
  ])("%s arrives in pieces", async (_, body) => {
    const { received, ended, bytesOf } = recordUploads();
    const answer = await upload(body());
    expect([answer.status, await answer.json()]).toEqual([200, { ...firmware, id: "empty" }]);
    const [id = ""] = ended;
    expect(received.get(id)?.map((data) => Buffer.from(data, "base64").length)).toEqual([
      pieceBytes,
      pieceBytes,
      content.length - 2 * pieceBytes,
    ]);
    expect(bytesOf(id).equals(content)).toBe(true);
  });

  test("asks for the body only when it takes it", async () => {
    recordUploads();
    const request = beginUpload();
    request.setHeader("expect", "100-continue");
    request.flushHeaders();
    await once(request, "continue");
    request.end(content);
    const [response] = await once(request, "response");
    expect(response.statusCode).toBe(200);
    response.resume();
  });

  test("waits for the service before it takes more", async () => {
    let running = 0;
    let most = 0;
    mesh.fakes.jobs.putContent = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 20));
      running--;
      return {};
    };
    expect((await upload(content)).status).toBe(200);
    expect(most).toBe(1);
  });

  test("of another media type, or compressed, is refused", async () => {
    for (const headers of [
      { "content-type": "application/json" },
      { "content-type": "multipart/form-data; boundary=x" },
      { ...octets, "content-encoding": "gzip" },
    ]) {
      const answer = await upload(content, headers);
      expect([answer.status, await reasonOf(answer)]).toEqual([415, "unsupported_media_type"]);
    }
  });

  test("of another length than was declared is refused before its bytes are read", async () => {
    const { received } = recordUploads();
    const answer = await upload(content.subarray(1));
    expect([answer.status, await reasonOf(answer)]).toEqual([400, "content_mismatch"]);
    expect(received.size).toBe(0);
  });

  test("of firmware that has its content is refused", async () => {
    const answer = await mesh.fetch("/api/v2/firmware/pump/content", {
      method: "POST",
      body: content,
      headers: octets,
    });
    expect([answer.status, await reasonOf(answer)]).toEqual([409, "content_exists"]);
  });

  test("that the service refuses midway is answered with the reason, and dropped", async () => {
    const { ended } = recordUploads();
    const { putContent } = mesh.fakes.jobs;
    mesh.fakes.jobs.putContent = async (input, context) =>
      input.number === 1 ? context.fail("firmware_not_found") : putContent(input, context);
    const answer = await upload(content);
    expect([answer.status, await reasonOf(answer)]).toEqual([404, "firmware_not_found"]);
    await eventually(() => ended.length === 1);
  });

  test("that is cut is dropped at once", async () => {
    const { received, ended } = recordUploads();
    const request = beginUpload();
    request.write(content.subarray(0, pieceBytes + 10));
    await eventually(() => received.size === 1);
    request.destroy();
    await eventually(() => ended.length === 1);
    expect(ended).toEqual([...received.keys()]);
  });

  test("that is cut while its first piece is being stored is dropped, too", async () => {
    const { received, ended } = recordUploads();
    const { putContent } = mesh.fakes.jobs;
    const dropped = Promise.withResolvers<void>();
    mesh.fakes.jobs.putContent = async (input, context) => {
      const stored = await putContent(input, context);
      await dropped.promise;
      return stored;
    };
    const request = beginUpload();
    request.write(content.subarray(0, pieceBytes));
    await eventually(() => received.size === 1);
    request.destroy();
    await eventually(() => ended.length === 1).finally(dropped.resolve);
  });

  test("beyond the fourth at a time is refused, until one has ended", async () => {
    const { received } = recordUploads();
    const requests = Array.from({ length: 4 }, beginUpload);
    for (const request of requests) request.write(content.subarray(0, pieceBytes));
    await eventually(() => received.size === 4);
    const refused = await upload(content);
    expect([refused.status, await reasonOf(refused)]).toEqual([429, "too_many_uploads"]);
    expect(refused.headers.get("retry-after")).toBe("5");
    for (const request of requests) request.destroy();
    await eventually(async () => (await upload(content)).status === 200);
  });
});

describe("a download", () => {
  const path = "/api/v2/firmware/pump/content";
  const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

  test("is the whole file, with its SHA-256 as its tag", async () => {
    const answer = await mesh.fetch(path);
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-length": String(content.length),
      "accept-ranges": "bytes",
      etag: `"${firmware.sha256}"`,
      "x-sha256": firmware.sha256,
      "x-md5": firmware.md5,
    });
    expect((await bytesOf(answer)).equals(content)).toBe(true);
  });

  test.each([
    ["bytes=0-0", 0, 1],
    [`bytes=${pieceBytes - 1}-${pieceBytes}`, pieceBytes - 1, pieceBytes + 1],
    [`bytes=${pieceBytes}-`, pieceBytes, content.length],
    ["bytes=-3", content.length - 3, content.length],
  ])("of %s is that part", async (range, start, end) => {
    const answer = await mesh.fetch(path, { headers: { range } });
    expect([answer.status, answer.headers.get("content-range")]).toEqual([
      206,
      `bytes ${start}-${end - 1}/${content.length}`,
    ]);
    expect((await bytesOf(answer)).equals(content.subarray(start, end))).toBe(true);
  });

  test("of a range after the end is refused with the size", async () => {
    const answer = await mesh.fetch(path, { headers: { range: `bytes=${content.length}-` } });
    expect([answer.status, answer.headers.get("content-range")]).toEqual([416, `bytes */${content.length}`]);
    expect(await reasonOf(answer)).toBe("range_not_satisfiable");
  });

  test("answers HEAD with the length and without the bytes, whatever the range", async () => {
    const answer = await mesh.fetch(path, { method: "HEAD", headers: { range: "bytes=0-1" } });
    expect([answer.status, answer.headers.get("content-length")]).toEqual([200, String(content.length)]);
  });

  test("of firmware without content is refused", async () => {
    const answer = await mesh.fetch(target);
    expect([answer.status, await reasonOf(answer)]).toEqual([404, "content_not_found"]);
  });

  test("that many ask for costs the service one reading of each piece", async () => {
    const sha256 = "1".repeat(64);
    const readings: number[] = [];
    const { readContent } = mesh.fakes.jobs;
    mesh.fakes.jobs.readFirmware = async ({ id }) => ({ ...firmware, id, sha256 });
    mesh.fakes.jobs.readContent = async (input, context) => {
      readings.push(input.number);
      return readContent(input, context);
    };
    const many = "/api/v2/firmware/many/content";
    const answers = await Promise.all(Array.from({ length: 20 }, () => mesh.fetch(many)));
    for (const answer of answers) expect((await bytesOf(answer)).equals(content)).toBe(true);
    expect(readings.sort()).toEqual([0, 1, 2]);
  });

  test("that is asked for in ranges costs one reading of the firmware a second, and a deleted one is gone then", async () => {
    const own = "/api/v2/firmware/ranges/content";
    let readings = 0;
    mesh.fakes.jobs.readFirmware = async ({ id }, context) =>
      readings++ === 0 ? { ...firmware, id } : context.fail("firmware_not_found");
    const first = await mesh.fetch(own, { headers: { range: "bytes=0-0" } });
    const asked = Array.from({ length: 10 }, (_, at) =>
      mesh.fetch(own, { headers: { range: `bytes=${at}-${at}` } }),
    );
    await Promise.all(asked);
    expect([first.status, readings < 10]).toEqual([206, true]);
    await eventually(async () => (await mesh.fetch(own)).status === 404);
  });

  test("whose piece cannot be read is cut, and is read again the next time", async () => {
    mesh.fakes.jobs.readFirmware = async ({ id }) => ({ ...firmware, id, sha256: "2".repeat(64) });
    const { readContent } = mesh.fakes.jobs;
    mesh.fakes.jobs.readContent = async (input, context) => {
      if (input.number === 1) {
        const { code, when } = jobs.methods.readContent.errors.content_not_found;
        throw new ServiceError({ code, reason: "content_not_found", message: when });
      }
      return readContent(input, context);
    };
    const broken = "/api/v2/firmware/broken/content";
    const cut = await mesh.fetch(broken);
    await expect(cut.arrayBuffer()).rejects.toThrow();
    mesh.fakes.jobs.readContent = readContent;
    expect((await bytesOf(await mesh.fetch(broken))).equals(content)).toBe(true);
  });
});

test("pieces that were not used for longest leave the cache", async () => {
  const readings: string[] = [];
  let hits = 0;
  const cache = new PieceCache({
    maxBytes: 300,
    pieceBytes: 100,
    read: async (id, number) => {
      readings.push(`${id}/${number}`);
      return Buffer.alloc(100);
    },
    onHit: () => hits++,
  });
  const read = (number: number) => cache.get({ id: "f", sha256: "s" }, number);
  for (const number of [0, 1, 2, 0, 3, 0, 1]) await read(number);
  expect(readings).toEqual(["f/0", "f/1", "f/2", "f/3", "f/1"]);
  expect(hits).toBe(2);
});
