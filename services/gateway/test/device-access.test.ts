import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
const clock = new ManualClock(new Date("2026-03-01T12:00:00.000Z"));
beforeAll(async () => {
  mesh = await startFixture({ clock });
});
afterEach(async () => {
  mesh.fakes.reset();
  await clock.advance(10_000);
});
afterAll(async () => mesh[Symbol.asyncDispose]());

describe("a named query", () => {
  test("asks for what the ACL says, narrowed by the caller", async () => {
    const asked: unknown[] = [];
    mesh.fakes.devices.authorize = async () => ({
      query: { topic: "temp/#", limit: 10, order: "desc", since: "PT24H" },
    });
    mesh.fakes.data.queryRecords = async (input) => {
      asked.push(input);
      return { next: null, items: [] };
    };
    const now = clock.now().getTime();
    const path = "/api/v2/m/device/data/known";
    expect(await (await mesh.fetch(`${path}?limit=100&skip=2`, { key: "public_key" })).text()).toBe("[]");
    expect(asked[0]).toEqual({
      principal: { kind: "public_key", device_id: "pump" },
      caller: "id-public_key",
      topic: "temp/#",
      order: "desc",
      limit: 10,
      skip: 2,
      since: new Date(now - 24 * 3600_000).toISOString(),
    });
    await (
      await mesh.fetch(`${path}?since=${new Date(now).toISOString()}&limit=3`, { key: "public_key" })
    ).text();
    expect(asked[1]).toMatchObject({ since: new Date(now).toISOString(), limit: 3 });
    await (await mesh.fetch(`${path}?since=PT1H&limit=1000000`, { key: "public_key" })).text();
    expect(asked[2]).toMatchObject({ since: new Date(now - 3600_000).toISOString(), limit: 10 });
  });

  test("without a limit of its own takes none over 5,000", async () => {
    mesh.fakes.devices.authorize = async () => ({ query: { topic: "a" } });
    const status = async (limit: number) =>
      (await mesh.fetch(`/api/v2/m/device/data/known?limit=${limit}`, { key: "public_key" })).status;
    expect([await status(5_000), await status(5_001)]).toEqual([200, 400]);
  });

  test("that is unknown, or cannot be one, is 404", async () => {
    for (const name of ["other", "a%20b"]) {
      const answer = await mesh.fetch(`/api/v2/m/device/data/${name}`, { key: "public_key" });
      expect(answer.status).toBe(404);
      expect(((await answer.json()) as { reason: string }).reason).toBe("query_not_found");
    }
  });

  test("is asked of the ACL once in five seconds", async () => {
    let asked = 0;
    mesh.fakes.devices.authorize = async () => {
      asked++;
      return { query: { topic: "a" } };
    };
    const run = async () => (await mesh.fetch("/api/v2/m/device/data/known", { key: "public_key" })).text();
    await run();
    await run();
    expect(asked).toBe(1);
    await clock.advance(5_001);
    await run();
    expect(asked).toBe(2);
  });
});

describe("what the ACL said", () => {
  const run = async () => (await mesh.fetch("/api/v2/m/device/data/known", { key: "public_key" })).text();
  let asked = 0;
  const allow = () => {
    asked = 0;
    mesh.fakes.devices.authorize = async () => {
      asked++;
      return { query: { topic: "a" } };
    };
  };

  test("is asked for anew at once by the gateway that changed the device, also where the change failed", async () => {
    allow();
    await run();
    mesh.fakes.devices.patchDevice = async () => ({ etag: '"1"', device: fakeDevice("pump") as never });
    await mesh.fetch("/api/v2/devices/pump", { json: { acl: {} } });
    await run();
    expect(asked).toBe(2);
    mesh.fakes.devices.patchDevice = async (_, context) => context.fail("device_not_found");
    await mesh.fetch("/api/v2/devices/pump", { json: { acl: {} } });
    await run();
    expect(asked).toBe(3);
  });

  test("is asked for anew once another gateway has changed the device", async () => {
    allow();
    await run();
    await mesh.deviceEvents.updated({
      id: "pump",
      timestamp: clock.now().toISOString(),
      device: fakeDevice("pump"),
    });
    await eventually(async () => {
      await run();
      return asked === 2;
    });
  });

  test("is not kept where the device changed while it was asked for", async () => {
    allow();
    const begun = Promise.withResolvers<void>();
    const changed = Promise.withResolvers<void>();
    mesh.fakes.devices.authorize = async () => {
      asked++;
      begun.resolve();
      await changed.promise;
      return { query: { topic: "a" } };
    };
    mesh.fakes.devices.patchDevice = async () => ({ etag: '"1"', device: fakeDevice("pump") as never });
    const first = run();
    await begun.promise;
    await mesh.fetch("/api/v2/devices/pump", { json: { acl: {} } });
    changed.resolve();
    await first;
    await run();
    expect(asked).toBe(2);
  });
});

describe("a function", () => {
  test("outside the ACL is 403, and the refusal is not remembered", async () => {
    const call = () => mesh.fetch("/api/v2/m/device/rpc/Reboot", { method: "POST", key: "public_key" });
    expect((await call()).status).toBe(403);
    mesh.fakes.devices.authorize = async () => ({ query: null });
    expect((await call()).status).toBe(200);
  });
});
