import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
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

const status = async (path = "/api/v2/devices/pump") => {
  const answer = await mesh.fetch(path);
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

test("all keys are asked for again after a reconnect", async () => {
  expect(await status()).toBe(200);
  await mesh.server.restart();
  // Until the fakes are back a call would wait for another try, by a clock that does not advance.
  await eventually(() => mesh.events.revoked({ key_ids: ["nobody"] }).then(() => true));
  mesh.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
  await eventually(async () => (await status()) === 401);
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
