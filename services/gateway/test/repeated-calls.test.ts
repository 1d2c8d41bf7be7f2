import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  // Longer than any machine takes to connect again.
  mesh = await startFixture({ reconnectGraceMs: 30_000 });
});
afterAll(async () => mesh[Symbol.asyncDispose]());

/** Answers the first call when the gateway has another connection; from then on there is nothing left to take. */
function takenOnce<R extends string>(reason: R) {
  const calls = { received: 0 };
  const take = async (_input: unknown, context: { fail(reason: R): never }) => {
    calls.received++;
    if (calls.received > 1) return context.fail(reason);
    await mesh.reconnect();
    return {};
  };
  return { calls, take };
}

const device = takenOnce("device_not_found");
const key = takenOnce("key_not_found");
const session = takenOnce("session_not_found");
const customer = takenOnce("customer_not_found");
const mail = takenOnce("mail_not_found");

test.each([
  ["DELETE", "devices/pump", device],
  ["DELETE", "keys/k1", key],
  ["DELETE", "sessions/s1", session],
  ["DELETE", "customers/ann", customer],
  ["POST", "mail/dead/7/retry", mail],
] as const)(
  "%s %s carried out just before the connection was lost answers 204, the next one 404",
  async (method, path, { calls }) => {
    mesh.fakes.devices.deleteDevice = device.take;
    mesh.fakes.keys.deleteKey = key.take;
    mesh.fakes.keys.endSession = session.take;
    mesh.fakes.keys.deleteCustomer = customer.take;
    mesh.fakes.mailer.retryDeadMail = mail.take;
    const ask = async () => (await mesh.fetch(`/api/v2/${path}`, { method })).status;
    expect(await ask()).toBe(204);
    expect(calls.received).toBe(2);
    expect(await ask()).toBe(404);
    expect(calls.received).toBe(3);
  },
);
