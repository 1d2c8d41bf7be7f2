import { describe, expect, test } from "@jest/globals";
import { createApiClient } from "../src/api/api-client.ts";
import { ApiProblem, UnexpectedAnswer, Unreachable } from "../src/api/api-problem.ts";
import { nextCursor } from "../src/api/next-page.ts";
import { deviceOf } from "./devices.ts";
import { bodyOf, sendJson, startHttpServer } from "./http-server.ts";

const key = `mk_${"a".repeat(32)}`;

describe("the client of the API", () => {
  test("makes the request that the route declares: method, path, query, body, and the key in a header alone", async () => {
    const seen: unknown[] = [];
    await using server = await startHttpServer(async (request, response) => {
      const { method, url, headers } = request;
      seen.push([method, url, headers.authorization, headers["content-type"], await bodyOf(request)]);
      if (method === "GET") sendJson(response, 200, []);
      else if (method === "DELETE") response.writeHead(204).end();
      else sendJson(response, 200, { pong: true });
    });
    const api = createApiClient({ origin: server.origin, key });
    await api.call("listDevices", { query: { limit: 10, online: true, filter: "a b&c", after: undefined } });
    const result = await api.call("callFunction", {
      params: { id: "pump-1", func: "Sys.GetInfo" },
      query: { timeout: 500 },
      body: { depth: [1] },
    });
    expect(await api.call("deleteKey", { params: { id: "a/b" } })).toBeUndefined();
    expect(result).toEqual({ pong: true });
    const bearer = `Bearer ${key}`;
    expect(seen).toEqual([
      ["GET", "/api/v2/devices?limit=10&online=true&filter=a+b%26c", bearer, undefined, ""],
      [
        "POST",
        "/api/v2/devices/pump-1/rpc/Sys.GetInfo?timeout=500",
        bearer,
        "application/json",
        '{"depth":[1]}',
      ],
      ["DELETE", "/api/v2/keys/a%2Fb", bearer, undefined, ""],
    ]);
  });

  test("gives the parsed body, and the headers to who asks for them", async () => {
    await using server = await startHttpServer((_request, response) =>
      sendJson(response, 200, [{ ...deviceOf("pump-1"), unknown: 1 }], {
        Link: '</api/v2/devices?limit=1&after=c%3D1>; rel="next"',
      }),
    );
    const { body, headers } = await createApiClient({ origin: server.origin, key }).exchange("listDevices", {
      query: { limit: 1 },
    });
    expect(body).toEqual([deviceOf("pump-1")]);
    expect(nextCursor(headers)).toBe("c=1");
  });

  test("throws what the gateway says is wrong", async () => {
    await using server = await startHttpServer((_request, response) =>
      sendJson(response, 502, {
        type: "/docs/errors#device_error",
        title: "Device error",
        status: 502,
        detail: "The device answered with an error.",
        reason: "device_error",
        request_id: "r1",
        error: { code: -32000, message: "too hot" },
      }),
    );
    const api = createApiClient({ origin: server.origin, key });
    const problem = await api.call("listKeys", {}).catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(ApiProblem);
    expect(problem).toMatchObject({
      status: 502,
      reason: "device_error",
      message: "The device answered with an error.",
      requestId: "r1",
      code: -32000,
    });
  });

  test.each([
    [504, "The service data gave no answer in time."],
    [503, "The service data cannot be reached, or cannot serve now."],
  ])("names the service to which %i is due", async (status, message) => {
    const detail = "`data`: what the gateway says of any service";
    const problem = {
      type: "/docs/errors#any",
      title: "Any",
      status,
      detail,
      reason: "any",
      request_id: "r1",
      error: { code: status, message: detail },
      service: "data",
    };
    await using server = await startHttpServer((_request, response) => sendJson(response, status, problem));
    const thrown = await createApiClient({ origin: server.origin, key })
      .call("listKeys", {})
      .catch((error: unknown) => error);
    expect(thrown).toMatchObject({ status, message });
  });

  test("throws a problem, too, where something else than the gateway refuses", async () => {
    await using server = await startHttpServer((_request, response) =>
      response.writeHead(503, { "Content-Type": "text/html" }).end("<h1>Bad gateway</h1>"),
    );
    const problem = await createApiClient({ origin: server.origin, key })
      .call("listKeys", {})
      .catch((error: unknown) => error);
    expect(problem).toMatchObject({ name: "ApiProblem", status: 503, reason: "unreadable", requestId: null });
  });

  test("sends with a master key what no session may send, or is asked to, and nothing else", async () => {
    const keys: (string | undefined)[] = [];
    await using server = await startHttpServer((request, response) => {
      keys.push(request.headers.authorization);
      sendJson(response, 200, []);
    });
    const asked: string[] = [];
    const api = createApiClient({
      origin: server.origin,
      key: "sk_1",
      askMasterKey: async () => {
        asked.push("asked");
        return "mk_1";
      },
    });
    await api.call("listKeys", {});
    await api.call("listDevices", {});
    await api.call("listKeys", { asMaster: true });
    for (const operation of ["createKey", "createDevice", "createSession"] as const)
      await api.call(operation, {});
    await api.open("/api/v2/notify");
    expect(keys.map((sent) => sent?.slice("Bearer ".length))).toEqual([
      "sk_1",
      "sk_1",
      "mk_1",
      "mk_1",
      "mk_1",
      "mk_1",
      "sk_1",
    ]);
    expect(asked).toHaveLength(4);
  });

  test("tells its owner when the key is refused", async () => {
    await using server = await startHttpServer((_request, response) => response.writeHead(401).end());
    let refused = 0;
    const api = createApiClient({ origin: server.origin, key, onRefusedKey: () => refused++ });
    await expect(api.call("listKeys", {})).rejects.toMatchObject({ status: 401 });
    expect(refused).toBe(1);
  });

  test("does not take an answer that is not of the contract's form", async () => {
    await using server = await startHttpServer((_request, response) => sendJson(response, 200, [{ id: 1 }]));
    const api = createApiClient({ origin: server.origin, key });
    await expect(api.call("listDevices", {})).rejects.toBeInstanceOf(UnexpectedAnswer);
  });

  test("says that a server is away, and rejects with the reason of who gave up", async () => {
    let origin: string;
    {
      await using server = await startHttpServer(() => {});
      origin = server.origin;
      const giving = new AbortController();
      const call = createApiClient({ origin, key }).call("listKeys", { signal: giving.signal });
      const reason = new Error("left the view");
      giving.abort(reason);
      await expect(call).rejects.toBe(reason);
    }
    await expect(createApiClient({ origin, key }).call("listKeys", {})).rejects.toBeInstanceOf(Unreachable);
  });
});

describe("the cursor of a Link header", () => {
  test.each([
    ["", null],
    ["<https://mesh.example/api/v2/devices?limit=2&after=5>; rel=next", "5"],
    ['</a?after=1>; rel="prev", </a?after=2>; rel="next"', "2"],
    ["</a>; rel=next", null],
  ])("of %j is %j", (link, cursor) => {
    expect(nextCursor(new Headers({ Link: link }))).toBe(cursor);
  });
});
