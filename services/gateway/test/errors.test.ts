import { api } from "@devmesh/contracts/rest/api";
import { Problem } from "@devmesh/contracts/rest/problem";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { kitErrors, ServiceError } from "@devmesh/service-kit/errors";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { gatewayErrors } from "../src/http/gateway-errors.ts";
import { problemOf } from "../src/http/problem.ts";
import { errorReference } from "../src/reference/error-reference.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

describe("the status of an error", () => {
  const statuses = Object.fromEntries(errorReference().map(({ reason, status }) => [reason, status]));

  test.each(
    Object.entries({
      // api.md, RPC
      device_not_found: 404,
      device_offline: 409,
      rpc_timeout: 504,
      function_not_found: 404,
      device_error: 502,
      bad_device_reply: 502,
      frame_too_large: 413,
      bridge_restarting: 503,
      rpc_not_permitted: 403,
      // api.md, Device
      device_exists: 409,
      device_being_deleted: 409,
      version_conflict: 409,
      precondition_failed: 412,
      shadow_too_large: 413,
      invalid_device: 400,
      not_writable: 403,
      query_not_found: 404,
      view_not_found: 404,
      view_name_taken: 409,
      too_many_views: 409,
      board_not_found: 404,
      board_changed: 409,
      too_many_boards: 409,
      // api.md, Keys
      last_master_key: 409,
      key_contradictory: 400,
      expiry_past: 400,
      key_invalid: 401,
      // api.md, Customers and Stored data
      meta_too_large: 413,
      customer_read_only: 400,
      filter_invalid: 400,
      cursor_invalid: 400,
      device_mismatch: 403,
      unavailable: 503,
      deadline_exceeded: 504,
      internal: 500,
    }),
  )("%s is %i", (reason, status) => expect(statuses[reason]).toBe(status));

  test("is declared for every reason that a route's calls declare, and fits the code", () => {
    for (const route of Object.values<RouteDeclaration>(api)) {
      for (const { contract, methods } of route.calls) {
        for (const method of methods) {
          for (const [reason, { code }] of Object.entries(contract.methods[method]?.errors ?? {})) {
            const status = statuses[reason] ?? 0;
            expect(status).toBeGreaterThanOrEqual(400);
            // What the caller did is 4xx; what failed in a service is 5xx.
            const ours = ["internal", "unavailable", "deadline_exceeded"].includes(code);
            expect({ reason, ours: status >= 500 }).toEqual({ reason, ours });
          }
        }
      }
    }
  });

  test("no two declarations give one reason another status", () => {
    const reasons = errorReference().map(({ reason }) => reason);
    expect(new Set(reasons).size).toBe(reasons.length);
    for (const reason of Object.keys(gatewayErrors)) {
      if (reason in kitErrors)
        expect(statuses[reason]).toBe(gatewayErrors[reason as keyof typeof gatewayErrors].status);
    }
  });
});

describe("a problem", () => {
  test("of anything unforeseen says nothing of it", () => {
    const { problem } = problemOf(new TypeError("x is undefined at /srv/app.ts:1"), "r1");
    expect(JSON.stringify(problem)).not.toMatch(/undefined|srv/);
    const hidden = new ServiceError({ code: "internal", reason: "internal", message: "SQLITE_BUSY" });
    expect(JSON.stringify(problemOf(hidden, "r1").problem)).not.toContain("SQLITE");
  });
});

describe("over HTTP", () => {
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture();
  });
  afterEach(() => mesh.fakes.reset());
  afterAll(async () => mesh[Symbol.asyncDispose]());

  const call = async (query = "") => {
    const answer = await mesh.fetch(`/api/v2/devices/pump/rpc/F${query}`);
    return { answer, problem: Problem.parse(await answer.json()) };
  };

  test("what a device says is wrong is passed on as the device said it", async () => {
    mesh.fakes.bridge.call = async (_, context) =>
      context.fail("device_error", { code: -7, message: "no water" });
    const { answer, problem } = await call();
    expect(answer.status).toBe(502);
    expect(problem).toMatchObject({ reason: "device_error", error: { code: -7, message: "no water" } });
  });

  test("members that a key may not write are listed", async () => {
    mesh.fakes.devices.patchDevice = async (_, context) =>
      context.fail("not_writable", { pointers: ["/name", "/shadow/tags"] });
    const answer = await mesh.fetch("/api/v2/device", { key: "device_key", json: { name: "x" } });
    expect(answer.status).toBe(403);
    const problem = Problem.parse(await answer.json());
    expect(problem.pointers).toEqual(["/name", "/shadow/tags"]);
    expect(problem.error.message).toContain("`/name`: is not writable");
    expect(problem.errors).toEqual([
      { pointer: "/name", detail: "is not writable with this key" },
      { pointer: "/shadow/tags", detail: "is not writable with this key" },
    ]);
  });

  test("what breaks a device's rules is listed with pointers into the body", async () => {
    const details = [{ pointer: "/shadow/state/delta", detail: "is not written" }];
    mesh.fakes.devices.patchDevice = async (_, context) => context.fail("invalid_device", details);
    const answer = await mesh.fetch("/api/v2/devices/pump", { json: {} });
    expect(answer.status).toBe(400);
    expect(Problem.parse(await answer.json()).errors).toEqual(details);
  });

  test.each([
    ["/api/v2/devices?after=x", "cursor_invalid", "/query/after"],
    ["/api/v2/data?filter=x", "filter_invalid", "/query/filter"],
    ["/api/v2/data?device_id=pump", "device_mismatch", "/query/device_id"],
  ] as const)("%s refused as %s names the parameter", async (path, reason, pointer) => {
    mesh.fakes.devices.listDevices = async (_, context) => context.fail("cursor_invalid");
    mesh.fakes.data.queryRecords = async (_, context) => context.fail(reason);
    const problem = Problem.parse(await (await mesh.fetch(path)).json());
    expect([problem.reason, problem.errors?.map((error) => error.pointer)]).toEqual([reason, [pointer]]);
    expect(problem.error.message).toContain(`\`${pointer}\``);
  });

  test("what is wrong with a saved view is listed with pointers into the body", async () => {
    const pointersOf = async (json: object) => {
      const problem = Problem.parse(await (await mesh.fetch("/api/v2/views", { json })).json());
      return [problem.status, problem.reason, problem.errors?.map(({ pointer }) => pointer)];
    };
    expect(await pointersOf({ name: " ", query: "a b", colour: 1 })).toEqual([
      400,
      "invalid_request",
      ["/name", "/query", "/colour"],
    ]);
    expect(await pointersOf({ name: "Silent", query: "where=a" })).toEqual([
      409,
      "view_name_taken",
      ["/name"],
    ]);
  });

  test("what is wrong with a board is listed with pointers into the body", async () => {
    const pointersOf = async (path: string, json: object) => {
      const problem = Problem.parse(await (await mesh.fetch(`/api/v2/${path}`, { json })).json());
      return [problem.status, problem.reason, problem.errors?.map(({ pointer }) => pointer)];
    };
    const panel = {
      kind: "chart",
      where: {},
      topic: "temp",
      pointer: "",
      fn: "avg",
      range: "P1D",
      x: 0,
      y: 0,
      w: 4,
      h: 2,
    };
    const wrong = [
      { ...panel, device_ids: ["pump"] },
      { ...panel, x: 10 },
      { ...panel, range: "P9Y", pointer: "a", fn: "median" },
      { ...panel, w: 0, colour: 1 },
    ];
    expect(await pointersOf("boards", { name: " ", panels: wrong })).toEqual([
      400,
      "invalid_request",
      [
        "/name",
        "/panels/0",
        "/panels/1/w",
        "/panels/2/pointer",
        "/panels/2/fn",
        "/panels/2/range",
        "/panels/3/w",
        "/panels/3/colour",
      ],
    ]);
    const many = Array.from({ length: 41 }, () => panel);
    expect(await pointersOf("boards", { name: "Wall", panels: many })).toEqual([
      400,
      "invalid_request",
      ["/panels"],
    ]);
    expect(await pointersOf("boards/wall", { revision: 7 })).toEqual([409, "board_changed", ["/revision"]]);
  });

  test("a service that cannot serve is named, also where another one called it", async () => {
    const unavailable = async (service?: string) => {
      mesh.fakes.devices.listDevices = async () => {
        throw ServiceError.of("unavailable", service === undefined ? {} : { service });
      };
      const answer = await mesh.fetch("/api/v2/devices");
      expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
      return Problem.parse(await answer.json());
    };
    expect((await unavailable()).service).toBe("devices");
    const problem = await unavailable("keys");
    expect(problem.service).toBe("keys");
    expect(problem.error.message).toMatch(/^`keys`: No replica /);
  });

  test("a call lost with its bridge is 503 and worth another try", async () => {
    mesh.fakes.bridge.call = async (_, context) => context.fail("bridge_restarting");
    const { answer, problem } = await call();
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(problem.reason).toBe("bridge_restarting");
  });

  test("a bridge that never answers is a timeout shortly after the device's time", async () => {
    mesh.fakes.bridge.call = async (_, { deadline, signal }) => {
      await deadline.clock.sleep(60_000, signal);
      return { result: null };
    };
    const startedAt = performance.now();
    const { answer, problem } = await call("?timeout=100");
    expect(answer.status).toBe(504);
    expect(problem.reason).toBe("rpc_timeout");
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  test("the parameters of a device call are passed on as they are, and the result comes bare", async () => {
    const seen: unknown[] = [];
    mesh.fakes.bridge.call = async (input) => {
      seen.push(input);
      return { result: { a: [1, "}"] } };
    };
    const answer = await mesh.fetch("/api/v2/devices/pump/rpc/Sys.GetInfo?timeout=500", {
      json: { a: { b: [] } },
    });
    expect(await answer.text()).toBe('{"a":[1,"}"]}');
    expect(seen).toEqual([
      { device_id: "pump", method: "Sys.GetInfo", params: { a: { b: [] } }, timeout_ms: 500 },
    ]);
    for (const json of ["text", 1, null, true]) {
      expect((await mesh.fetch("/api/v2/devices/pump/rpc/F", { json })).status).toBe(400);
    }
  });
});
