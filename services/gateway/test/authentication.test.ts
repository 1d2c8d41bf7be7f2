import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const clock = new ManualClock();
let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture({ clock, env: { RATE_ANONYMOUS: "10" } });
});
afterEach(async () => {
  await clock.advance(120_000);
  mesh.fakes.reset();
});
afterAll(async () => mesh[Symbol.asyncDispose]());

const status = async (path = "/api/v2/devices/pump", key: keyof typeof secrets = "master") => {
  const answer = await mesh.fetch(path, { key });
  await answer.body?.cancel();
  return answer.status;
};

/** Lets `keys` answer as it does, but only once the test says so; counts how often it was asked. */
function heldVerification() {
  const verify = mesh.fakes.keys.verify;
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const seen = { asked: 0, release: () => release() };
  mesh.fakes.keys.verify = async (input, context) => {
    seen.asked++;
    await held;
    return verify(input, context);
  };
  return seen;
}

test("a key is verified once, then cached", async () => {
  const seen = heldVerification();
  const both = Promise.all([status(), status(), status()]);
  await eventually(() => seen.asked === 1);
  seen.release();
  expect(await both).toEqual([200, 200, 200]);
  expect(await status()).toBe(200);
  expect(seen.asked).toBe(1);
});

test("a revoked key stops working as soon as the event arrives", async () => {
  expect(await status()).toBe(200);
  mesh.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
  expect(await status()).toBe(200);
  await mesh.events.revoked({ key_ids: ["id-master"] });
  await eventually(async () => (await status()) === 401);
});

test("a verification that was running when its key was revoked is not used", async () => {
  const seen = heldVerification();
  const first = status();
  await eventually(() => seen.asked === 1);
  const handled = async () => (await mesh.metrics.eventsHandled.get()).values[0]?.value ?? 0;
  const before = await handled();
  await mesh.events.revoked({ key_ids: ["id-master"] });
  await eventually(async () => (await handled()) > before);
  seen.release();
  expect(await first).toBe(401);
  await status();
  expect(seen.asked).toBe(2);
});

/** Moves the clock until the answer is there. */
async function awaited<T>(answer: Promise<T>): Promise<T> {
  const seen = { settled: false };
  const settle = () => {
    seen.settled = true;
  };
  answer.then(settle, settle);
  await eventually(async () => {
    if (!seen.settled) await clock.advance(50);
    return seen.settled;
  });
  return answer;
}

describe("while keys does not answer", () => {
  let shared: Fixture;
  beforeEach(async () => {
    shared = mesh;
    mesh = await startFixture({ clock });
  });
  afterEach(async () => {
    await mesh[Symbol.asyncDispose]();
    mesh = shared;
  });

  const customer = () => status("/api/v2/customer", "customer");

  test("a key in use goes on for a minute after its time, and no request waits for keys", async () => {
    expect(await status()).toBe(200);
    const seen = heldVerification();
    await clock.advance(50_000);
    expect([await status(), await status()]).toEqual([200, 200]);
    await eventually(() => seen.asked === 1);
    await clock.advance(10_000);
    expect(await awaited(status())).toBe(200);
    await clock.advance(58_000);
    // The clock does not move while these are answered.
    expect([await status(), await status()]).toEqual([200, 200]);
    await clock.advance(2_000);
    expect(await awaited(status())).toBe(503);
    seen.release();
    expect(await awaited(status())).toBe(200);
  });

  test("keys is waited for with the first key that is past its time, and with no other", async () => {
    expect([await status(), await customer()]).toEqual([200, 200]);
    const seen = heldVerification();
    await clock.advance(70_000);
    expect(await awaited(status())).toBe(200);
    expect(await customer()).toBe(200);
    seen.release();
  });

  test("a key that is not known is refused with 503, and known when keys answers late", async () => {
    expect(await status()).toBe(200);
    const seen = heldVerification();
    await clock.advance(70_000);
    expect(await awaited(status())).toBe(200);
    const refused = await awaited(mesh.fetch("/api/v2/customer", { key: "customer" }));
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({ reason: "unavailable", service: "keys" });
    await eventually(() => seen.asked === 2);
    seen.release();
    await eventually(async () => (await awaited(customer())) === 200);
    expect(seen.asked).toBe(2);
  });

  test("a revoked key stops working as soon as the event arrives", async () => {
    expect([await status(), await customer()]).toEqual([200, 200]);
    const seen = heldVerification();
    await clock.advance(70_000);
    expect(await awaited(status())).toBe(200);
    await mesh.events.revoked({ key_ids: ["id-master"] });
    await eventually(async () => (await awaited(status())) === 503);
    expect(await customer()).toBe(200);
    seen.release();
  });

  test("a key expires at its time", async () => {
    const verify = mesh.fakes.keys.verify;
    const expires_at = new Date(clock.now().getTime() + 80_000).toISOString();
    mesh.fakes.keys.verify = async (input, context) => ({ ...(await verify(input, context)), expires_at });
    expect(await status()).toBe(200);
    const seen = heldVerification();
    await clock.advance(70_000);
    expect(await awaited(status())).toBe(200);
    await clock.advance(10_000);
    expect(await awaited(status())).toBe(503);
    seen.release();
  });
});

test("a key that keys refuses when it is verified again stops working at once", async () => {
  expect(await status()).toBe(200);
  mesh.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
  await clock.advance(50_000);
  expect(await status()).toBe(200);
  await eventually(async () => (await status()) === 401);
});

test("a key past its time is verified before it is used again, while keys answers", async () => {
  expect(await status()).toBe(200);
  mesh.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
  await clock.advance(60_000);
  expect(await status()).toBe(401);
});

test("no key is used while revocations cannot arrive", async () => {
  await using other = await startFixture();
  const mqtt = async () => (await other.fetch("/api/v2/mqtt")).status;
  expect(await mqtt()).toBe(200);
  await other.server.stop();
  await eventually(async () => (await mqtt()) === 503);
});

test("all keys are asked for again after a reconnect", async () => {
  // A call that meets nobody is repeated by the clock.
  expect(await awaited(status())).toBe(200);
  await mesh.server.restart();
  await eventually(async () => (await mesh.events.revoked({ key_ids: ["nobody"] })) === "ok");
  mesh.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
  await eventually(async () => (await awaited(status())) === 401);
});

test("a key expires between two uses", async () => {
  const verify = mesh.fakes.keys.verify;
  const expires_at = new Date(clock.now().getTime() + 1_000).toISOString();
  mesh.fakes.keys.verify = async (input, context) => ({ ...(await verify(input, context)), expires_at });
  expect(await status()).toBe(200);
  await clock.advance(1_000);
  expect(await status()).toBe(401);
});

test("failed attempts use up the rate of their address, and spare the keys that are known", async () => {
  expect(await status()).toBe(200);
  const guess = (at: number) =>
    mesh.fetch("/api/v2/devices", { key: null, headers: { authorization: `Bearer mk_guess${at}` } });
  let asked = 0;
  mesh.fakes.keys.verify = async (_, context) => {
    asked++;
    return context.fail("key_invalid");
  };
  for (let at = 0; at < 20; at++) expect((await guess(at)).status).toBe(401);
  const refused = await guess(20);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(asked).toBe(20);
  expect(await status()).toBe(200);
  await clock.advance(1_000);
  expect((await guess(21)).status).toBe(401);
});

test("a key service that fails is no reason to call a key wrong", async () => {
  await clock.advance(120_000);
  mesh.fakes.keys.verify = async () => {
    throw new Error("down");
  };
  const answer = await mesh.fetch("/api/v2/devices");
  expect(answer.status).toBe(500);
});

test("a session gets no secret out of what it reads", async () => {
  const [{ token: _, ...customer }] = [
    await mesh.fakes.keys.readCustomer({ customer_id: "ann" }, undefined as never),
  ];
  const meta = { [secrets.public_key]: { note: "kept" } };
  mesh.fakes.keys.listCustomers = async () => ({ next: null, items: [{ ...customer, meta }] });
  const read = async (path: string, key: "master" | "session") =>
    await (await mesh.fetch(path, { key })).json();
  expect(await read("/api/v2/keys", "master")).toMatchObject([{ id: "id-master", key: secrets.master }]);
  expect(await read("/api/v2/keys", "session")).toMatchObject([{ id: "id-master", key: null }]);
  expect(await read("/api/v2/customers", "master")).toMatchObject([{ meta }]);
  expect(await read("/api/v2/customers?limit=1", "session")).toMatchObject([
    { meta: { "pk_[redacted]": { note: "kept" } } },
  ]);
  const call = async (key: "master" | "session") =>
    await (
      await mesh.fetch("/api/v2/devices/pump/rpc/Config.Get", { key, json: { pass: secrets.device } })
    ).json();
  expect(await call("master")).toEqual({ pass: secrets.device });
  expect(await call("session")).toEqual({ pass: "dt_[redacted]" });
});

test("a session is of the key that begins it, and none begins another", async () => {
  const begin = (key: "master" | "session") =>
    mesh.fetch("/api/v2/sessions", { key, json: { name: "Firefox" } });
  const begun = await begin("master");
  expect([begun.status, await begun.json()]).toMatchObject([
    201,
    { master_key_id: "id-master", name: "Firefox", key: secrets.session },
  ]);
  const refused = await begin("session");
  expect([refused.status, await refused.json()]).toMatchObject([
    403,
    { reason: "wrong_key_kind", detail: "This route needs a master key; the key is a session." },
  ]);
});
