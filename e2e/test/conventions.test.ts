import { randomBytes } from "node:crypto";
import { Problem } from "@devmesh/contracts/rest/problem";
import { eventually } from "@devmesh/testkit/eventually";
import type { HttpAnswer } from "@devmesh/testkit/http";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type RestClient, restClient } from "../src/rest-client.ts";
import { asAnyone, asMaster, type EnrolledDevice, enrolDevice } from "../src/tenant.ts";

/** What every answer has in common, asked of a running mesh: problems, keys, conditions, HEAD. */
const presetKey = `mk_${randomBytes(16).toString("hex")}`;

let mesh: TestMesh;
let pump: EnrolledDevice;
let master: RestClient;

beforeAll(async () => {
  // One service is missing throughout: what needs it must say so, what does not must not notice.
  mesh = await startMesh({
    args: ["--without", "data"],
    env: { MASTER_KEY: presetKey, KEYS_REVEAL: "once", RATE_ANONYMOUS: "1000" },
  });
  master = asMaster(mesh);
  pump = await enrolDevice(mesh, "pump-1", { queries: { all: { topic: "#" } } });
});
afterAll(async () => mesh?.stop(), 60_000);

function problemOf(answer: HttpAnswer): Problem {
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  return Problem.parse(answer.json);
}

describe("a problem", () => {
  const nested = (depth: number) =>
    `{"shadow":{"state":{"desired":{"app":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}}}}`;

  interface Wrong {
    readonly key?: "master" | "device_key" | "nobody" | "unknown";
    readonly method?: string;
    readonly path: string;
    readonly body?: unknown;
    readonly status: number;
    readonly reason: string;
    readonly headers?: Readonly<Record<string, string>>;
  }

  const cases: readonly Wrong[] = [
    {
      path: "devices",
      key: "nobody",
      status: 401,
      reason: "key_missing",
      headers: { "www-authenticate": "Bearer" },
    },
    {
      path: "devices",
      key: "unknown",
      status: 401,
      reason: "key_invalid",
      headers: { "www-authenticate": "Bearer" },
    },
    { path: "devices", key: "device_key", status: 403, reason: "wrong_key_kind" },
    { path: "device", key: "device_key", body: { name: "x" }, status: 403, reason: "not_writable" },
    { path: "devices?limit=1&limit=2", status: 400, reason: "invalid_request" },
    { path: "devices?after=x", status: 400, reason: "cursor_invalid" },
    { path: "devices?limt=1", status: 400, reason: "invalid_request" },
    { path: "devices", body: "{", status: 400, reason: "body_malformed" },
    { path: "devices", body: { nmae: "x" }, status: 400, reason: "invalid_request" },
    { path: "devices", body: { id: "pump-1" }, status: 409, reason: "device_exists" },
    { path: "devices", body: { name: "x".repeat(600_000) }, status: 413, reason: "body_too_large" },
    { path: "devices/pump-1", body: nested(10), status: 400, reason: "invalid_device" },
    { path: "devices/pump-1", body: nested(50_000), status: 400, reason: "body_too_deep" },
    { path: "devices/pump-1", body: { shadow: { version: 99 } }, status: 409, reason: "version_conflict" },
    { path: "devices/nobody", status: 404, reason: "device_not_found" },
    { path: "devices/%C3", status: 400, reason: "path_malformed" },
    { path: "devices/pump-1/rpc/ping", status: 409, reason: "device_offline" },
    { path: "keys", body: { device_id: "nobody" }, status: 404, reason: "device_not_found" },
    { path: "keys", body: { access: "device" }, status: 400, reason: "key_contradictory" },
    { path: "keys", body: { expires_at: "2020-01-01T00:00:00Z" }, status: 400, reason: "expiry_past" },
    { path: "keys", body: { expires_at: "2999-02-30T00:00:00Z" }, status: 400, reason: "invalid_request" },
    { path: "keys/none", method: "DELETE", status: 404, reason: "key_not_found" },
    {
      path: "keys",
      method: "PUT",
      status: 405,
      reason: "method_not_allowed",
      headers: { allow: "GET, HEAD, POST" },
    },
    {
      path: "/docs",
      method: "POST",
      status: 405,
      reason: "method_not_allowed",
      headers: { allow: "GET, HEAD" },
    },
    { path: "/newcustomer?email=nobody", key: "nobody", status: 400, reason: "invalid_request" },
    { path: "/confirm?token=x", key: "nobody", status: 404, reason: "confirmation_invalid" },
    { path: "nowhere", status: 404, reason: "route_not_found" },
    { path: "data", status: 503, reason: "unavailable", headers: { "retry-after": "1" } },
  ];

  test.each(cases)("$status $reason of $path has all its members", async (wrong) => {
    const { key = "master", path, body, status, reason, headers = {} } = wrong;
    const caller = {
      master,
      device_key: pump.asDeviceKey,
      nobody: asAnyone(mesh),
      unknown: restClient(mesh.url, `mk_${"0".repeat(32)}`),
    }[key];
    const answer = await caller.send(wrong.method ?? (body === undefined ? "GET" : "POST"), path, body);
    const problem = problemOf(answer);
    expect({ status: answer.status, reason: problem.reason }).toEqual({ status, reason });
    expect(problem).toMatchObject({
      type: `/docs/errors#${reason}`,
      status,
      request_id: answer.headers.get("x-request-id"),
      error: { code: status, message: problem.detail },
    });
    expect(problem.title).not.toBe("");
    expect(problem.detail).toMatch(/\w.*\.$/);
    expect(problem.detail).not.toMatch(/undefined|Error:|\.ts\b|zod|schema/i);
    if (reason === "invalid_request") expect(problem.errors?.length).toBeGreaterThan(0);
    // Existing clients show `error.message` alone.
    if (problem.errors !== undefined) expect(problem.error.message).toContain(problem.errors[0]?.pointer);
    if (reason === "not_writable") expect(problem.pointers).toEqual(["/name"]);
    const atFault = {
      not_writable: "/name",
      expiry_past: "/expires_at",
      key_contradictory: "/access",
      cursor_invalid: "/query/after",
    };
    if (Object.hasOwn(atFault, reason))
      expect(problem.errors?.map(({ pointer }) => pointer)).toEqual([
        atFault[reason as keyof typeof atFault],
      ]);
    expect(problem.service).toBe(reason === "unavailable" ? "data" : undefined);
    for (const [name, value] of Object.entries(headers)) expect(answer.headers.get(name)).toBe(value);
  });
});

describe("a key", () => {
  test("that was preset is the master key, and stands in the data folder", async () => {
    expect(mesh.masterKey).toBe(presetKey);
    expect((await asAnyone(mesh).get(`devices?access_token=${presetKey}`)).status).toBe(200);
  });

  test("is shown only when it is made, where keys are revealed once", async () => {
    const made = (await master.post("keys", { device_id: "pump-1", name: "shown once" })).json;
    expect(made.key).toMatch(/^dk_[0-9A-Za-z]{32}$/);
    const listed = (await master.get("keys")).json as { id: string; key: string | null }[];
    expect(listed.map(({ id }) => id)).toContain(made.id);
    expect(new Set(listed.map(({ key }) => key))).toEqual(new Set([null]));
  });

  test("ends at its time, also one that the gateway remembers", async () => {
    let seconds = 1;
    // A slow machine uses the first key after its time: each next one has twice as long.
    const { holder, expires_at } = await eventually(async () => {
      seconds *= 2;
      const expires_at = new Date(Date.now() + seconds * 1_000).toISOString();
      const made = (await master.post("keys", { device_id: "pump-1", expires_at })).json;
      const holder = restClient(mesh.url, made.key);
      return (await holder.get("device")).status === 200 && { holder, expires_at };
    });
    await eventually(async () => (await holder.get("device")).status === 401);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at));
  });
});

describe("a conditional write", () => {
  test("is made with the tag that was read, refused with an older one", async () => {
    const { headers } = await master.get("devices/pump-1");
    const condition = { headers: { "if-match": headers.get("etag") ?? "" } };
    expect((await master.post("devices/pump-1", { name: "first" }, condition)).status).toBe(200);
    const late = await master.post("devices/pump-1", { name: "second" }, condition);
    expect(late.status).toBe(412);
    expect(problemOf(late).reason).toBe("precondition_failed");
    expect((await master.get("devices/pump-1")).json.name).toBe("first");
  });
});

describe("HEAD", () => {
  test.each(["devices", "devices/pump-1", "keys", "/docs", "/docs/errors", "openapi.json", "nowhere"])(
    "of %s says what GET says, without the body",
    async (path) => {
      const head = await master.send("HEAD", path);
      const get = await master.get(path);
      expect({ status: head.status, text: head.text }).toEqual({ status: get.status, text: "" });
      for (const name of ["content-type", "content-length", "etag", "allow"]) {
        expect(head.headers.get(name)).toBe(get.headers.get(name));
      }
    },
  );
});
