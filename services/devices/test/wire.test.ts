import { defaultAcl } from "@devmesh/contracts/model/acl";
import type { JsonObject } from "@devmesh/contracts/model/json";
import type { Principal } from "@devmesh/contracts/principal";
import { ServiceError } from "@devmesh/service-kit/errors";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { call, type DevicesFixture, startDevicesFixture, trafficLimits } from "./devices-fixture.ts";

const master = { kind: "master" } as Principal;

let mesh: DevicesFixture;
beforeAll(async () => {
  mesh = await startDevicesFixture();
  await mesh.start();
});
afterAll(async () => {
  await mesh[Symbol.asyncDispose]();
});

const create = (body: Parameters<DevicesFixture["devices"]["createDevice"]>[0] = {}) =>
  mesh.devices.createDevice(body, call());
const read = (id: string, principal = master) => mesh.devices.readDevice({ id, principal }, call());
const patch = (
  id: string,
  body: object,
  { principal = master, if_match = undefined as string | undefined } = {},
) =>
  mesh.devices.patchDevice(
    { id, principal, patch: body as JsonObject, ...(if_match === undefined ? {} : { if_match }) },
    call(),
  );
const failure = async (answer: Promise<unknown>) => {
  const error = await answer.then(
    (value) => new Error(`answered ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ServiceError)) throw error;
  return { code: error.code, reason: error.reason, details: error.details };
};
const received = (name: string, id: string) =>
  mesh.received.filter((event) => event.name === name && event.id === id);

describe("creating", () => {
  test("a device without a body gets an id, the default ACL, an empty shadow and its secrets", async () => {
    const device = await create();
    expect(device).toEqual({
      id: expect.stringMatching(/^[a-z0-9]{16}$/),
      name: null,
      acl: defaultAcl,
      delta_metadata: true,
      online: false,
      last_seen: null,
      created_at: expect.stringMatching(/Z$/),
      shadow: {
        state: { desired: {}, reported: { online: false } },
        metadata: { desired: {}, reported: {} },
        tags: {},
        version: 0,
        timestamp: expect.any(Number),
      },
      ...mesh.credentials.get(device.id),
    });
    expect((await read(device.id)).device).not.toHaveProperty("token");
    await mesh.until(() => received("created", device.id).length === 1);
    expect(JSON.stringify(received("created", device.id))).not.toMatch(/dt_|pk_/);
  });

  test("a device is made with name, ACL and shadow, whose write is the first version", async () => {
    const shadow = { state: { desired: { app: { on: true } } }, tags: { labels: ["x"] } };
    const device = await create({
      id: "full",
      name: "Full",
      acl: { ...defaultAcl, rpc: ["Sys.*".slice(0, 3)] },
      shadow,
    });
    expect(device).toMatchObject({ name: "Full", acl: { rpc: ["Sys"] } });
    expect(device.shadow).toMatchObject({
      version: 1,
      tags: { labels: ["x"] },
      state: { delta: { app: { on: true } } },
    });
  });

  test("an id is given once", async () => {
    await create({ id: "once" });
    expect(await failure(create({ id: "once" }))).toMatchObject({
      code: "conflict",
      reason: "device_exists",
    });
  });

  test("what breaks a rule is refused with pointers and stores nothing", async () => {
    const shadow = {
      state: { desired: JSON.parse('{"__proto__":1}'), reported: { online: true } },
      version: 3,
    };
    const { reason, details } = await failure(create({ id: "bad", shadow }));
    expect(reason).toBe("invalid_device");
    expect((details as { pointer: string }[]).map(({ pointer }) => pointer).sort()).toEqual([
      "/shadow/state/desired/__proto__",
      "/shadow/state/reported/online",
      "/shadow/version",
    ]);
    const big = { tags: { x: "x".repeat(9_000) } };
    expect(await failure(create({ id: "bad", shadow: big }))).toMatchObject({ reason: "shadow_too_large" });
    const acl = { ...defaultAcl, read: Array.from({ length: 100 }, () => `/${"x".repeat(500)}`) };
    expect(await failure(create({ id: "bad", acl }))).toMatchObject({ reason: "invalid_device" });
    expect(await failure(read("bad"))).toMatchObject({ reason: "device_not_found" });
  });

  test("a topic of a named query as records show it is refused, which would find nothing", async () => {
    const acl = (topic: string) => ({ ...defaultAcl, queries: { day: { topic } } });
    const refused = [
      { pointer: "/acl/queries/day/topic", detail: "is relative to `db/meter/`: leave that out" },
    ];
    for (const topic of ["db/meter/kwh", "db/meter"])
      expect(await failure(create({ id: "meter", acl: acl(topic) }))).toMatchObject({
        reason: "invalid_device",
        details: refused,
      });
    await create({ id: "meter", acl: acl("db/meters") });
    expect(await failure(patch("meter", { acl: acl("db/meter/#") }))).toMatchObject({
      reason: "invalid_device",
      details: refused,
    });
    expect((await patch("meter", { acl: acl("kwh") })).device).toMatchObject({ acl: acl("kwh") });
  });

  test("when keys cannot issue credentials nothing of the device stays", async () => {
    mesh.onCall = (name) => {
      if (name === "keys.issueCredentials broken") throw ServiceError.of("unavailable");
    };
    expect(await failure(create({ id: "broken" }))).toMatchObject({ code: "unavailable" });
    await mesh.until(() => mesh.calls.includes("keys.forgetDevice broken"));
    mesh.onCall = () => undefined;
    expect(await mesh.until(() => create({ id: "broken" }).catch(() => null))).toMatchObject({
      id: "broken",
    });
  });
});

describe("patching", () => {
  test("name, ACL and shadow change together, are published, and change the tag", async () => {
    await create({ id: "p1" });
    const before = await read("p1");
    const { device, etag } = await patch("p1", {
      name: "new",
      acl: { ...defaultAcl, write: [] },
      shadow: { state: { desired: { a: 1 } } },
    });
    expect(device).toMatchObject({ name: "new", acl: { write: [] }, shadow: { version: 1 } });
    expect(etag).not.toBe(before.etag);
    expect(etag).toMatch(/^"[^"]+"$/);
    expect(await read("p1")).toEqual({ device, etag });
    await mesh.until(() => received("updated", "p1").length === 1);
    expect(received("updated", "p1")[0]?.payload).toMatchObject({ device });
  });

  test("a patch that writes nothing increments nothing and publishes nothing", async () => {
    await create({ id: "p2", name: "n" });
    const { etag } = await read("p2");
    for (const nothing of [
      {},
      { shadow: {} },
      { shadow: { state: {}, version: 0 } },
      { name: "n", acl: defaultAcl },
    ]) {
      const answer = await patch("p2", nothing);
      expect([answer.etag, answer.device.shadow]).toEqual([etag, expect.objectContaining({ version: 0 })]);
    }
    await patch("p2", { name: "m" });
    expect((await read("p2")).device).toMatchObject({ name: "m", shadow: { version: 0 } });
    await mesh.until(() => received("updated", "p2").length > 0);
    expect(received("updated", "p2")).toHaveLength(1);
  });

  test("a version that is not the shadow's is a conflict that names the version; the right one is accepted once", async () => {
    await create({ id: "p3" });
    const write = (version: number) =>
      patch("p3", { shadow: { state: { desired: { a: version } }, version } });
    await write(0);
    expect(await failure(write(0))).toEqual({
      code: "conflict",
      reason: "version_conflict",
      details: { version: 1 },
    });
    await write(1);
  });

  test("If-Match takes the current tag, a list with it, or *, and neither an old tag nor a weak one", async () => {
    await create({ id: "p4" });
    const { etag } = await read("p4");
    const step = (if_match: string) => patch("p4", { shadow: { tags: { at: if_match } } }, { if_match });
    const next = (await step(`"x", ${etag}`)).etag;
    expect(await failure(step(etag))).toMatchObject({ reason: "precondition_failed" });
    for (const wrong of [`W/${next}`, "nonsense", '""', next.replaceAll('"', "")]) {
      expect(await failure(step(wrong))).toMatchObject({ reason: "precondition_failed" });
    }
    await step("*");
  });

  test("whether a delta has metadata is set by a master key alone, and changes no version of the shadow", async () => {
    await create({ id: "quiet", delta_metadata: false });
    expect((await read("quiet")).device).toMatchObject({ delta_metadata: false });
    const deltas = () => mesh.devices.readDeltas({ ids: ["quiet"] }, call());
    expect(await deltas()).toMatchObject([{ has_metadata: false, metadata: {}, version: 0 }]);
    const { device } = await patch("quiet", { delta_metadata: true });
    expect(device).toMatchObject({ delta_metadata: true, shadow: { version: 0 } });
    expect(await deltas()).toMatchObject([{ has_metadata: true }]);
    await mesh.until(() => received("updated", "quiet").length === 1);
    for (const kind of ["device_key", "public_key", "device"] as const) {
      const principal: Principal = { kind, device_id: "quiet" };
      expect(await failure(patch("quiet", { delta_metadata: false }, { principal }))).toMatchObject({
        reason: "not_writable",
        details: { pointers: ["/delta_metadata"] },
      });
      expect((await read("quiet", principal)).device).not.toHaveProperty("delta_metadata");
    }
    expect(await failure(patch("quiet", { delta_metadata: null }))).toMatchObject({
      reason: "invalid_device",
      details: [{ pointer: "/delta_metadata" }],
    });
  });

  test("every member that breaks a rule is pointed at and nothing is applied", async () => {
    await create({ id: "p5" });
    const body = {
      nmae: 1,
      name: 5,
      acl: { read: ["no pointer"] },
      shadow: {
        state: {
          desired: { ok: 1, x: JSON.parse('[{"__proto__":1}]') },
          reported: { online: null },
          delta: {},
        },
        metadata: {},
        timestamp: 1,
        tags: 7,
      },
    };
    const { reason, details } = await failure(patch("p5", body));
    const found = details as { pointer: string; detail: string }[];
    expect(reason).toBe("invalid_device");
    expect(found.map(({ pointer }) => pointer).sort()).toEqual(
      [
        "/nmae",
        "/name",
        "/acl/read/0",
        "/shadow/state/desired/x/0/__proto__",
        "/shadow/state/reported/online",
        "/shadow/state/delta",
        "/shadow/metadata",
        "/shadow/timestamp",
        "/shadow/tags",
      ].sort(),
    );
    expect(found.find(({ pointer }) => pointer === "/shadow/state/delta")?.detail).toContain("computed");
    expect((await read("p5")).device.shadow).toMatchObject({ version: 0, state: { desired: {} } });
  });

  test("a body nested without end is refused like any other", async () => {
    await create({ id: "deep" });
    const nest = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
    for (const body of [
      { acl: nest(2_000) },
      { name: nest(2_000) },
      { shadow: { tags: { a: nest(2_000) } } },
    ]) {
      expect(await failure(patch("deep", body))).toMatchObject({ reason: "invalid_device" });
    }
  });

  test("a section grows to its limit and not over it", async () => {
    await create({ id: "p6" });
    const fill = (bytes: number) =>
      patch("p6", { shadow: { state: { reported: { x: "x".repeat(bytes - 8) } } } });
    await fill(32_768);
    expect(await failure(fill(32_769))).toMatchObject({
      code: "invalid_argument",
      reason: "shadow_too_large",
      details: [{ pointer: "/shadow/state/reported" }],
    });
  });

  test("a device at all its limits at once still fits into a reply and into an event", async () => {
    await create({ id: "full-up" });
    const letters = Array.from({ length: 90 }, (_, at) => String.fromCharCode(at < 57 ? 35 + at : 36 + at));
    const leaves = Object.fromEntries(letters.map((letter) => [letter, 1]));
    // Each leaf costs six bytes in the state and five times that in the metadata.
    const section: Record<string, object> = {};
    for (const letter of letters) {
      if (Buffer.byteLength(JSON.stringify({ ...section, [letter]: leaves })) <= 32_768)
        section[letter] = leaves;
    }
    const acl = { ...defaultAcl, read: Array.from({ length: 63 }, () => `/${"x".repeat(511)}`) };
    const tags = { x: "x".repeat(8_184) };
    await patch("full-up", { name: "n".repeat(256), acl, shadow: { state: { desired: section }, tags } });
    const other = JSON.parse(JSON.stringify(section).replaceAll(":1", ":2"));
    const { device } = await patch("full-up", { shadow: { state: { reported: other } } });
    const bytes = Buffer.byteLength(JSON.stringify(device));
    expect(bytes).toBeGreaterThan(440_000);
    expect(bytes).toBeLessThan(512 * 1024);
    await mesh.until(() => received("updated", "full-up").length === 2);
    expect((await mesh.devices.listDevices({ filter: "full-up" }, call())).items).toHaveLength(1);
  });

  test("a key of another device, and one without rights, change nothing", async () => {
    await create({ id: "p7" });
    const other: Principal = { kind: "public_key", device_id: "p6" };
    expect(await failure(patch("p7", {}, { principal: other }))).toMatchObject({
      reason: "device_not_found",
    });
    expect(await failure(read("p7", { kind: "customer", customer_id: "c" }))).toMatchObject({
      reason: "device_not_found",
    });
    const principal: Principal = { kind: "device_key", device_id: "p7" };
    const body = { name: "x", shadow: { state: { desired: { app: 1, other: 2 } } } };
    expect(await failure(patch("p7", body, { principal }))).toEqual({
      code: "permission_denied",
      reason: "not_writable",
      details: { pointers: ["/name", "/shadow/state/desired/other"] },
    });
    const allowed = await patch("p7", { shadow: { state: { desired: { app: { a: 1 } } } } }, { principal });
    expect(allowed.device).toEqual({
      id: "p7",
      shadow: { state: { desired: { app: { a: 1 } }, reported: { app: {} } } },
    });
    expect((await read("p7")).device).toMatchObject({
      name: null,
      shadow: { version: 1, state: { desired: { app: { a: 1 } } } },
    });
  });

  test("rights are checked before the body's rules", async () => {
    await create({ id: "p8", acl: { ...defaultAcl, write: ["/state/reported", "/tags"] } });
    const principal: Principal = { kind: "public_key", device_id: "p8" };
    const body = { shadow: { state: { reported: { online: true } }, tags: { a: 1 } } };
    expect(await failure(patch("p8", { ...body, name: 7 }, { principal }))).toMatchObject({
      reason: "not_writable",
      details: { pointers: ["/name"] },
    });
    expect(await failure(patch("p8", body, { principal }))).toMatchObject({ reason: "invalid_device" });
  });

  test("a hundred writes on one device, ten of them at once, are a hundred versions, none lost", async () => {
    await create({ id: "p9" });
    const versions: unknown[] = [];
    const write = async (at: number) => {
      const { device } = await patch("p9", { shadow: { state: { desired: { [`m${at}`]: at } } } });
      versions.push((device.shadow as JsonObject).version);
    };
    // Each is stored after the one before it, on a busy disk within its deadline.
    for (let at = 0; at < 100; at += 10)
      await Promise.all(Array.from({ length: 10 }, (_, nth) => write(at + nth)));
    expect(new Set(versions).size).toBe(100);
    const { shadow } = (await read("p9")).device as {
      shadow: { version: number; state: { desired: JsonObject } };
    };
    expect([shadow.version, Object.keys(shadow.state.desired).length]).toEqual([100, 100]);
  });
});

describe("reading", () => {
  test("a delta is what the device will get", async () => {
    await create({ id: "r1", shadow: { state: { desired: { a: 1 } } } });
    expect(await mesh.devices.readDelta({ id: "r1" }, call())).toMatchObject({ state: { a: 1 }, version: 1 });
    expect(await failure(mesh.devices.readDelta({ id: "none" }, call()))).toMatchObject({
      reason: "device_not_found",
    });
  });

  test("deltas are read together, in the order of their ids", async () => {
    await create({ id: "delta-2", shadow: { state: { desired: { a: 1 } } } });
    await create({ id: "delta-3" });
    expect(await mesh.devices.readDeltas({ ids: ["delta-3", "none", "delta-2"] }, call())).toEqual([
      expect.objectContaining({ state: {} }),
      null,
      expect.objectContaining({ state: { a: 1 } }),
    ]);
  });

  test("updates by devices are applied together, those of one in their order, each with its outcome", async () => {
    await create({ id: "u1" });
    await create({ id: "u2" });
    const taken_at = new Date().toISOString();
    const reported = (value: number) => ({ state: { reported: { value } } });
    const outcomes = await mesh.devices.updateShadows(
      {
        updates: [
          { id: "u1", patch: reported(1), taken_at },
          { id: "none", patch: reported(1), taken_at },
          { id: "u2", patch: { ...reported(1), tags: { a: 1 } }, taken_at },
          { id: "u1", patch: { ...reported(2), version: 9 }, taken_at },
          { id: "u1", patch: reported(3), taken_at },
          { id: "u2", patch: { state: { reported: 7 } }, taken_at },
        ],
      },
      call(),
    );
    expect(outcomes).toMatchObject([
      { version: 1 },
      { error: { reason: "device_not_found" } },
      { error: { reason: "not_writable", details: { pointers: ["/shadow/tags"] } } },
      { error: { reason: "version_conflict", details: { version: 1 } } },
      { version: 2 },
      { error: { reason: "invalid_device" } },
    ]);
    expect((await read("u1")).device.shadow).toMatchObject({ version: 2, state: { reported: { value: 3 } } });
  });

  test("functions and queries are authorised as the ACL names them", async () => {
    const query = { topic: "temp/#", limit: 5 };
    await create({ id: "r2", acl: { ...defaultAcl, rpc: ["Sys.GetInfo"], queries: { temps: query } } });
    const authorize = (action: Parameters<DevicesFixture["devices"]["authorize"]>[0]["action"], id = "r2") =>
      mesh.devices.authorize({ id, action }, call());
    expect(await authorize({ kind: "rpc", func: "Sys.GetInfo" })).toEqual({ query: null });
    expect(await authorize({ kind: "query", name: "temps" })).toEqual({ query });
    expect(await failure(authorize({ kind: "rpc", func: "Sys.Reboot" }))).toMatchObject({
      reason: "rpc_not_permitted",
    });
    for (const name of ["none", "constructor", "__proto__", "toString"]) {
      expect(await failure(authorize({ kind: "query", name }))).toMatchObject({ reason: "query_not_found" });
    }
    expect(await failure(authorize({ kind: "query", name: "temps" }, "none"))).toMatchObject({
      reason: "device_not_found",
    });
  });

  test("pointers of a query are stored and authorised, and left out where the first release would refuse them", async () => {
    const day = { topic: "temp", since: "P1D", pointers: ["", "/celsius"] };
    const acl = { ...defaultAcl, queries: { day, records: { topic: "temp/#" } } };
    const bare = { ...acl, queries: { ...acl.queries, day: { topic: "temp", since: "P1D" } } };
    expect((await create({ id: "r5", acl })).acl).toEqual(bare);
    expect((await read("r5")).device).toMatchObject({ acl });
    expect((await mesh.devices.readAccess({ id: "r5" }, call())).acl).toEqual(bare);
    const query = (name: string) => ({ id: "r5", action: { kind: "query", name } as const });
    expect(await mesh.devices.authorize(query("day"), call())).toEqual({ query: bare.queries.day });
    const authorize = (name: string, id = "r5") => mesh.devices.authorizeSeries({ id, name }, call());
    expect(await authorize("day")).toEqual({ query: day });
    expect(await failure(authorize("records"))).toMatchObject({ reason: "series_not_permitted" });
    for (const name of ["none", "constructor"])
      expect(await failure(authorize(name))).toMatchObject({ reason: "query_not_found" });
    expect(await failure(authorize("day", "none"))).toMatchObject({ reason: "device_not_found" });
    await mesh.until(() => received("created", "r5").length === 1);
    expect(received("created", "r5")[0]?.payload).toMatchObject({ device: { acl: bare }, acl });
    const wild = { ...acl, queries: { day: { ...day, topic: "temp/+" } } };
    expect(await failure(patch("r5", { acl: wild }))).toMatchObject({
      reason: "invalid_device",
      details: [{ pointer: "/acl/queries/day/topic", detail: "must have no wildcards beside `pointers`" }],
    });
  });

  test("credentials are read again, and rotated one by one", async () => {
    const { token, public_key } = await create({ id: "r3" });
    const credentials = () => mesh.devices.readCredentials({ id: "r3" }, call());
    expect(await credentials()).toEqual({ token, public_key });
    const next = await mesh.devices.rotatePublicKey({ id: "r3" }, call());
    expect(await credentials()).toEqual({ token, ...next });
    expect(next.public_key).not.toBe(public_key);
    for (const method of [
      "readCredentials",
      "rotatePublicKey",
      "rotateToken",
      "deleteDevice",
      "readPresence",
    ] as const) {
      expect(await failure(mesh.devices[method]({ id: "none" }, call()))).toMatchObject({
        reason: "device_not_found",
      });
    }
  });
});

describe("listing", () => {
  const list = (input: Parameters<DevicesFixture["devices"]["listDevices"]>[0] = {}) =>
    mesh.devices.listDevices(input, call());
  const listAll = async (input: Parameters<DevicesFixture["devices"]["listDevices"]>[0] = {}) => {
    const ids: string[] = [];
    let pages = 0;
    for (let after: string | null | undefined; after !== null; pages++) {
      const page: Awaited<ReturnType<typeof list>> = await list({
        ...input,
        ...(after === undefined ? {} : { after }),
      });
      ids.push(...page.items.map(({ id }) => id));
      after = page.next;
    }
    return { ids, pages };
  };

  test("pages follow one another in the order of creation, however large the devices are", async () => {
    const shadow = { state: { desired: { x: "x".repeat(30_000) }, reported: { x: "x".repeat(30_000) } } };
    const made = Array.from({ length: 30 }, (_, at) => `big-${at}`);
    for (const id of made) await create({ id, shadow });
    const { ids, pages } = await listAll({ filter: "big-" });
    expect(ids).toEqual(made);
    expect(pages).toBeGreaterThan(3);
  });

  test("a limit is obeyed and the cursor is there only while more follows", async () => {
    for (const at of [1, 2, 3]) await create({ id: `lim-${at}` });
    const first = await list({ filter: "lim-", limit: 2 });
    expect(first.items.map(({ id }) => id)).toEqual(["lim-1", "lim-2"]);
    const second = await list({ filter: "lim-", limit: 2, after: first.next ?? "" });
    expect([second.items.map(({ id }) => id), second.next]).toEqual([["lim-3"], null]);
    expect((await list({ filter: "lim-", limit: 3 })).next).toBeNull();
    const newest = await listAll({ filter: "lim-", limit: 2, order: "desc" });
    expect(newest).toEqual({ ids: ["lim-3", "lim-2", "lim-1"], pages: 2 });
    expect(await list({ filter: "nothing like it" })).toEqual({ next: null, items: [] });
    expect(await failure(list({ after: "x" }))).toMatchObject({ reason: "cursor_invalid" });
  });

  test("devices are chosen by presence, together with a filter", async () => {
    for (const at of [1, 2, 3, 4]) await create({ id: `on-${at}` });
    mesh.broker.login("on-2");
    mesh.broker.login("on-4");
    expect((await listAll({ filter: "on-", online: true })).ids).toEqual(["on-2", "on-4"]);
    expect((await listAll({ filter: "on-", online: false, limit: 1 })).ids).toEqual(["on-1", "on-3"]);
    expect((await list({ filter: "on-", online: true })).items[0]).toMatchObject({
      online: true,
      last_seen: mesh.clock.now().toISOString(),
      shadow: { state: { reported: { online: true } }, version: 0 },
    });
  });
});

test("the client ids of a device's connections are listed, and no other device's", async () => {
  const clientIds = async () => (await mesh.devices.readConnections({ id: "c1" }, call())).client_ids;
  expect(await clientIds()).toEqual([]);
  const [first, second] = [mesh.broker.login("c1"), mesh.broker.login("c1"), mesh.broker.login("c2")];
  expect(await clientIds()).toEqual([`c1:${first.connectionId}`, `c1:${second.connectionId}`]);
});

describe("presence", () => {
  test("online is published at once, offline two seconds after the last connection went, and last_seen stays", async () => {
    await create({ id: "w1" });
    const first = mesh.broker.login("w1");
    await mesh.until(() => received("online", "w1").length === 1);
    const connected = { online: true, connected_at: expect.any(String) };
    expect(await mesh.devices.readPresence({ id: "w1" }, call())).toEqual(connected);
    const second = mesh.broker.login("w1");
    mesh.broker.leave(first);
    mesh.broker.leave(second);
    const went = mesh.clock.now().toISOString();
    expect(await mesh.devices.readPresence({ id: "w1" }, call())).toEqual({
      online: false,
      connected_at: null,
    });
    await mesh.clock.advance(1_900);
    expect(received("offline", "w1")).toEqual([]);
    await mesh.until(() => received("offline", "w1").length === 1);
    await mesh.until(async () => (await read("w1")).device.last_seen === went);
  });

  test("an absence of less than two seconds is not published, and shows in the time of the connection", async () => {
    await create({ id: "w5" });
    const first = mesh.broker.login("w5");
    await mesh.until(() => received("online", "w5").length === 1);
    await mesh.clock.advance(5_000);
    mesh.broker.leave(first);
    await mesh.clock.advance(1_000);
    const back = mesh.clock.now().toISOString();
    mesh.broker.login("w5");
    const presence = () => mesh.devices.readPresence({ id: "w5" }, call());
    await mesh.until(async () => (await presence()).connected_at === back);
    expect([received("online", "w5").length, received("offline", "w5")]).toEqual([1, []]);
  });

  test("a connection of an id that is no device is not published", async () => {
    mesh.broker.login("nobody");
    await create({ id: "w2" });
    mesh.broker.login("w2");
    await mesh.until(() => received("online", "w2").length === 1);
    expect(received("online", "nobody")).toEqual([]);
  });

  test("a connection that nobody received of is found, and one that a killed server took along is dropped", async () => {
    await create({ id: "w3" });
    const silent = mesh.broker.login("w3", { published: false });
    await mesh.until(() => received("online", "w3").length === 1);
    mesh.broker.leave(silent, { published: false });
    await mesh.until(() => received("offline", "w3").length === 1);
    mesh.broker.login("w3", { published: false });
    mesh.broker.reconnect();
    await mesh.until(() => received("online", "w3").length === 2);
  });

  test("a connection opened while the listing runs is not taken for a lost one", async () => {
    await create({ id: "w4" });
    mesh.broker.whileListing = () => void mesh.broker.login("w4");
    mesh.broker.reconnect();
    await mesh.until(() => received("online", "w4").length === 1);
    mesh.broker.whileListing = () => undefined;
    for (let second = 0; second < 65; second++) await mesh.clock.advance(1_000);
    expect(received("offline", "w4")).toEqual([]);
  });
});

test("a device that sends too much over short connections, of which no listing has one, is throttled", async () => {
  await create({ id: "short" });
  for (let n = 0; n <= 10; n++) {
    const connection = mesh.broker.login("short");
    mesh.broker.send(connection, { messages: trafficLimits.messagesPerSecond, bytes: 100 });
    mesh.broker.leave(connection);
  }
  await mesh.until(() => received("throttled", "short").length === 1);
  expect(received("throttled", "short")).toMatchObject([{ payload: { why: "messages" } }]);
});

test("of one device at most three hundred connections are open, and of others as many", async () => {
  for (let n = 0; n < 300; n++) for (const id of ["many", "more"]) mesh.broker.login(id);
  const [first, second] = [mesh.broker.login("many"), mesh.broker.login("many")];
  await mesh.until(() => mesh.broker.closed.includes(second));
  expect(mesh.broker.closed.filter(({ deviceId }) => ["many", "more"].includes(deviceId))).toEqual([
    first,
    second,
  ]);
});

test("changes of one device wait for no acknowledgement of their events, which keep their order", async () => {
  await using unacknowledged = await startDevicesFixture();
  const { devices, received } = unacknowledged;
  await unacknowledged.start();
  await devices.createDevice({ id: "busy" }, call());
  await unacknowledged.dropStream();
  const values = Array.from({ length: 20 }, (_, at) => at + 1);
  // Each acknowledgement is awaited for two seconds, and a change has five.
  await Promise.all(
    values.map((value) =>
      devices.patchDevice(
        { id: "busy", principal: master, patch: { shadow: { state: { desired: { value } } } } },
        call(),
      ),
    ),
  );
  const versions = await unacknowledged.until(() => {
    const updates = received.filter(({ name }) => name === "updated");
    return updates.length === values.length && updates.map(({ payload }) => payload);
  });
  expect(versions).toMatchObject(values.map((version) => ({ device: { shadow: { version } } })));
});
