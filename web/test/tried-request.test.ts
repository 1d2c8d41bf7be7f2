import { describe, expect, test } from "@jest/globals";
import { fetchLimited, prepareRequest } from "../src/features/reference/tried-request.ts";
import { startHttpServer } from "./http-server.ts";

const origin = "http://mesh.example";

describe("a request out of the reference", () => {
  const prepared = (method: string, path: string, confirmed = true, to = origin) => {
    const asked: string[] = [];
    const confirm = async (description: string) => {
      asked.push(description);
      return confirmed;
    };
    const request = { url: to + path, method, headers: {} as Record<string, string> };
    return { asked, request: prepareRequest(request, { api: { key: "mk_1" }, origin, confirm }) };
  };

  test("gets the key of the session in a header, not in its URL", async () => {
    const { asked, request } = prepared("GET", "/api/v2/devices?limit=1");
    expect(await request).toMatchObject({
      url: `${origin}/api/v2/devices?limit=1`,
      headers: { Authorization: "Bearer mk_1" },
    });
    expect(asked).toEqual([]);
  });

  test("is not sent to another server, which would get the key", async () => {
    const { request } = prepared("GET", "/api/v2/devices", true, "http://elsewhere.example");
    await expect(request).rejects.toThrow("only to its own server");
  });

  test.each([
    ["DELETE", "/api/v2/devices/pump"],
    ["post", "/api/v2/devices/pump/token"],
    ["POST", "/api/v2/devices/pump/public_key"],
  ])("is sent only after a confirmation: %s %s", async (method, path) => {
    const allowed = prepared(method, path);
    expect((await allowed.request).headers.Authorization).toBe("Bearer mk_1");
    expect(allowed.asked).toEqual([`${method.toUpperCase()} ${path}`]);
    await expect(prepared(method, path, false).request).rejects.toThrow("the request was not sent");
  });
});

describe("the response of such a request", () => {
  test("has status, headers and body", async () => {
    await using server = await startHttpServer((_request, response) =>
      response.writeHead(404, { "Content-Type": "application/json" }).end('{"reason":"device_not_found"}'),
    );
    const response = await fetchLimited(server.origin, {});
    expect([response.status, response.headers.get("Content-Type")]).toEqual([404, "application/json"]);
    expect(await response.json()).toEqual({ reason: "device_not_found" });
  });

  test("may have no body", async () => {
    await using server = await startHttpServer((_request, response) => response.writeHead(204).end());
    const response = await fetchLimited(server.origin, {});
    expect([response.status, await response.text()]).toEqual([204, ""]);
  });

  test("of a stream that never ends is what came until a deadline", async () => {
    await using server = await startHttpServer((_request, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write("data: {}\n\n");
    });
    const response = await fetchLimited(server.origin, {}, 500);
    expect(await response.text()).toBe("data: {}\n\n");
  });

  test("is cut where it is too long to be shown", async () => {
    await using server = await startHttpServer((_request, response) => response.end("x".repeat(1_000_000)));
    expect((await (await fetchLimited(server.origin, {})).text()).length).toBe(200_000);
  });
});
