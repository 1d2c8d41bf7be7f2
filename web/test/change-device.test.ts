import { describe, expect, test } from "@jest/globals";
import { createApiClient } from "../src/api/api-client.ts";
import { equalJson } from "../src/features/devices/shared/json-changes.ts";
import { patchDevice } from "../src/features/devices/shared/patch-device.ts";
import { deviceOf } from "./devices.ts";
import { bodyOf, sendJson, startHttpServer } from "./http-server.ts";

/** A server of one device; `meanwhile` is done to it once before each of the first writes comes in. */
function startDeviceServer(
  name: string,
  meanwhile: ((device: { name: string; revision: number }) => void)[],
) {
  const held = { name, revision: 1 };
  const writes: unknown[] = [];
  const device = () => deviceOf("one", { name: held.name });
  const server = startHttpServer(async (request, response) => {
    if (request.method === "GET") return sendJson(response, 200, device(), { ETag: `"1.${held.revision}"` });
    meanwhile.shift()?.(held);
    if (request.headers["if-match"] !== `"1.${held.revision}"`) {
      return sendJson(response, 412, {
        type: "about:blank",
        title: "Precondition Failed",
        status: 412,
        reason: "precondition_failed",
        detail: "The device has changed.",
        request_id: "r-1",
        error: { code: 412, message: "The device has changed." },
      });
    }
    const body = JSON.parse(await bodyOf(request)) as { name: string };
    writes.push(body);
    held.name = body.name;
    held.revision += 1;
    sendJson(response, 200, device());
  });
  return { server, writes };
}

describe("a change of a device that somebody looked at", () => {
  test("is tried again when something else of the device was written meanwhile", async () => {
    const { server, writes } = startDeviceServer("old", [
      (device) => {
        device.revision += 1;
      },
    ]);
    await using gateway = await server;
    const api = createApiClient({ origin: gateway.origin, key: "mk_1" });
    const outcome = await patchDevice(api, "one", ({ name }) => (name === "old" ? { name: "new" } : null));
    expect(outcome).toMatchObject({ kind: "saved", device: { name: "new" } });
    expect(writes).toEqual([{ name: "new" }]);
  });

  test("is not made over what somebody else changed, who is told", async () => {
    const { server, writes } = startDeviceServer("old", [
      (device) => {
        device.name = "theirs";
        device.revision += 1;
      },
    ]);
    await using gateway = await server;
    const api = createApiClient({ origin: gateway.origin, key: "mk_1" });
    const outcome = await patchDevice(api, "one", ({ name }) => (name === "old" ? { name: "mine" } : null));
    expect(outcome).toMatchObject({ kind: "conflict", device: { name: "theirs" } });
    expect(writes).toEqual([]);
  });
});

test("two values are the same whatever the order of their members", () => {
  expect(equalJson({ a: [1, { b: null, c: "" }] }, { a: [1, { c: "", b: null }] })).toBe(true);
  expect(equalJson({ a: 1 }, { a: 1, b: 1 })).toBe(false);
  expect(equalJson([1, 2], [2, 1])).toBe(false);
  expect(equalJson({}, [])).toBe(false);
});
