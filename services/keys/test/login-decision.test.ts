import type { Finding } from "@devmesh/device-broker/diagnosis-reporter";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import { createSecret, digestSecret } from "../src/credentials/secret.ts";
import { createIngestionCheck } from "../src/mqtt-login/ingestion-check.ts";
import { createLoginThrottle } from "../src/mqtt-login/login-throttle.ts";
import { createMqttLogin, type MqttLogin } from "../src/mqtt-login/mqtt-login.ts";
import type { CredentialStore } from "../src/store/credential-store.ts";
import { openSqliteKeyStore } from "../src/store/key-store.sqlite.ts";

const { signal } = new AbortController();
const hourMs = 60 * 60 * 1000;

interface WorldOptions {
  readonly random?: () => number;
  readonly ask?: () => Promise<unknown>;
  readonly perAddress?: number;
}

async function world({ random = () => 0, ask = async () => ({}), perAddress = 100 }: WorldOptions = {}) {
  const clock = new ManualClock();
  const store = openSqliteKeyStore(":memory:");
  const throttle = createLoginThrottle(clock, { perDevice: 10, perAddress });
  const ingestion = createIngestionCheck(ask);
  const reported: Finding[] = [];
  let lookups = 0;
  const credentials: CredentialStore = {
    ...store.credentials,
    findLogin(...login) {
      lookups++;
      return store.credentials.findLogin(...login);
    },
  };
  const decide = createMqttLogin({
    credentials,
    throttle,
    ingestion,
    clock,
    report: (finding) => reported.push(finding),
    random,
  });
  const token = createSecret("device");
  const secret = (text: string) => ({ digest: digestSecret(text), sealed: new Uint8Array(1) });
  await store.credentials.issue(
    { deviceId: "d", epoch: "1", token: secret(token), publicKey: secret("pk") },
    signal,
  );
  const right: MqttLogin = {
    user: "d",
    password: token,
    mqttClientId: "d",
    remoteAddress: "10.0.0.1",
    isMqtt: true,
  };
  return {
    clock,
    store,
    ingestion,
    throttle,
    reported,
    /** How often the store was asked for a login. */
    lookups: () => lookups,
    attempt: (change: Partial<MqttLogin> = {}) => decide({ ...right, ...change }, signal),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

const throttled = { deny: "throttled" };
const wrong = { deny: "wrong_password" };

describe("an admission", () => {
  test("ends after 22 to 24 hours", async () => {
    for (const [random, hours] of [
      [0, 24],
      [0.5, 23],
    ] as const) {
      await using at = await world({ random: () => random });
      const expiresAt = new Date(at.clock.now().getTime() + hours * hourMs);
      expect(await at.attempt()).toMatchObject({ allow: { deviceId: "d", expiresAt } });
    }
  });

  test("renews the time its client id was seen once a day", async () => {
    await using at = await world();
    const start = at.clock.now().getTime();
    const seenAt = async () => (await at.store.credentials.findLogin("d", "d", signal))?.clientSeenAt;
    await at.attempt();
    await at.clock.advance(24 * hourMs - 1);
    await at.attempt();
    expect(await seenAt()).toBe(start);
    await at.clock.advance(1);
    await at.attempt();
    expect(await seenAt()).toBe(start + 24 * hourMs);
  });
});

describe("the throttle", () => {
  test("admits a right password whatever number of wrong ones came before, and counts these on", async () => {
    await using at = await world();
    for (let count = 0; count < 10; count++) expect(await at.attempt({ password: "x" })).toEqual(wrong);
    for (const remoteAddress of ["10.0.0.1", "10.0.0.2"]) {
      expect(await at.attempt({ remoteAddress })).toHaveProperty("allow");
    }
    expect(await at.attempt({ password: "x" })).toEqual(throttled);
  });

  test("passes one wrong password a second once a device used up its failures, and forgets them with time", async () => {
    await using at = await world();
    for (let count = 0; count < 10; count++) await at.attempt({ password: "x" });
    for (let second = 0; second < 3; second++) {
      await at.clock.advance(999);
      expect(await at.attempt({ password: "x" })).toEqual(throttled);
      await at.clock.advance(1);
      expect(await at.attempt({ password: "x" })).toEqual(wrong);
    }
    await at.clock.advance(60_000);
    for (let count = 0; count < 10; count++) expect(await at.attempt({ password: "x" })).toEqual(wrong);
    expect(await at.attempt({ password: "x" })).toEqual(throttled);
  });

  test("counts an address over all devices, wrong user names included, but not loopback", async () => {
    await using at = await world();
    for (let count = 0; count < 100; count++) {
      expect(await at.attempt({ user: count % 2 ? "!" : `x${count}` })).not.toEqual(throttled);
    }
    expect(await at.attempt({ password: "x" })).toEqual(throttled);
    expect(await at.attempt({ user: "!" })).toEqual(throttled);
    expect(await at.attempt()).toHaveProperty("allow");
    expect(await at.attempt({ password: "x", remoteAddress: "10.0.0.2" })).toEqual(wrong);
    await at.clock.advance(600);
    expect(await at.attempt({ password: "x" })).toEqual(wrong);
    for (const remoteAddress of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) {
      for (let count = 0; count < 200; count++) await at.attempt({ user: `y${count}`, remoteAddress });
      expect(await at.attempt({ password: "x", remoteAddress })).toEqual(wrong);
    }
  });

  test("counts no address where a proxy hides those of the devices", async () => {
    await using at = await world({ perAddress: 0 });
    for (let count = 0; count < 200; count++) await at.attempt({ user: `x${count}` });
    expect(await at.attempt({ password: "x" })).toEqual(wrong);
  });

  test("decides logins from where many have failed after all others", async () => {
    await using at = await world();
    for (let count = 0; count < 100; count++) await at.attempt({ user: `x${count}` });
    const order: string[] = [];
    const enter = async (name: string, change: Partial<MqttLogin>) => {
      if ("allow" in (await at.attempt(change))) order.push(name);
    };
    // As many as are decided at once, then one of each kind.
    const first = Array.from({ length: 100 }, (_, n) =>
      enter("first", { remoteAddress: "10.0.0.2", mqttClientId: `d:${n}` }),
    );
    const late = enter("suspect", {});
    const last = enter("last", { remoteAddress: "10.0.0.2" });
    await Promise.all([...first, late, last]);
    expect(order.slice(-2)).toEqual(["last", "suspect"]);
  });

  test("admits a device sixty times a minute, beside two times under each of its client ids", async () => {
    await using at = await world();
    const enter = async (mqttClientId = "d") => "allow" in (await at.attempt({ mqttClientId }));
    const restart = async () => {
      for (let n = 0; n < 50; n++) expect(await enter(`d:${n}`)).toBe(true);
    };
    await restart();
    await restart();
    await restart();
    for (let n = 0; n < 12; n++) expect(await enter()).toBe(true);
    expect(await at.attempt()).toEqual(throttled);
    await at.clock.advance(1_000);
    expect(await enter()).toBe(true);
    expect(await enter()).toBe(false);
    await at.clock.advance(60_000);
    await restart();
  });

  test("takes no login of a device for wrong passwords, nor for those that it refuses", async () => {
    await using at = await world();
    for (let count = 0; count < 100; count++) await at.attempt({ password: "x" });
    for (let count = 0; count < 62; count++) expect(await at.attempt()).toHaveProperty("allow");
    for (let count = 0; count < 100; count++) expect(await at.attempt()).toEqual(throttled);
    await at.clock.advance(10_000);
    for (let count = 0; count < 10; count++) expect(await at.attempt()).toHaveProperty("allow");
  });

  test("admits a device under three hundred new client ids at once, then under one a second, and always under known ones", async () => {
    await using at = await world();
    const enter = async (mqttClientId: string) => "allow" in (await at.attempt({ mqttClientId }));
    for (let n = 0; n < 300; n++) expect(await enter(`d:${n}`)).toBe(true);
    expect(await at.attempt({ mqttClientId: "d:300" })).toEqual({ deny: "too_many_client_ids" });
    expect(await enter("A".repeat(22))).toBe(false);
    expect(await enter("d:299")).toBe(true);
    await at.clock.advance(1_000);
    expect(await enter("d:300")).toBe(true);
    expect(await enter("d:301")).toBe(false);
  });

  test("counts a foreign client id with a right password as a failure", async () => {
    await using at = await world();
    for (let count = 0; count < 10; count++) {
      expect(await at.attempt({ mqttClientId: "other" })).toEqual({ deny: "wrong_client_id" });
    }
    expect(await at.attempt({ password: "x" })).toEqual(throttled);
  });
});

describe("a login that was just refused", () => {
  test("is refused again with the same password without the store, for ten seconds", async () => {
    await using at = await world();
    const ghost = { user: "ghost", mqttClientId: "ghost" };
    for (let count = 0; count < 5; count++) {
      expect(await at.attempt({ password: "x", remoteAddress: `10.0.0.${count}` })).toEqual(wrong);
      expect(await at.attempt(ghost)).toEqual({ deny: "unknown_device" });
    }
    expect(at.lookups()).toBe(2);
    expect(at.reported.at(-1)).toMatchObject({ id: "ghost", reason: "unknown_device", registered: false });
    await at.clock.advance(9_999);
    await at.attempt({ password: "x" });
    expect(at.lookups()).toBe(2);
    await at.clock.advance(1);
    await at.attempt({ password: "x" });
    expect(at.lookups()).toBe(3);
  });

  test("counts as a failure each time, and leaves other passwords and devices as they are", async () => {
    await using at = await world();
    for (let count = 0; count < 10; count++) expect(await at.attempt({ password: "x" })).toEqual(wrong);
    expect(await at.attempt({ password: "x" })).toEqual(throttled);
    expect(await at.attempt({ user: "ghost", password: "x" })).toEqual({ deny: "unknown_device" });
    expect(await at.attempt()).toHaveProperty("allow");
  });

  test("does not keep out the device that is created meanwhile, nor one with a new token", async () => {
    await using at = await world();
    const [first, second] = [createSecret("device"), createSecret("device")];
    const stored = (text: string) => ({ digest: digestSecret(text), sealed: new Uint8Array(1) });
    const ghost = { user: "ghost", mqttClientId: "ghost" };
    const { credentials } = at.store;
    await at.attempt({ ...ghost, password: "x" });
    await credentials.issue(
      { deviceId: "ghost", epoch: "1", token: stored(first), publicKey: stored("pk-ghost") },
      signal,
    );
    expect(await at.attempt({ ...ghost, password: first })).toHaveProperty("allow");
    await at.attempt({ ...ghost, password: "y" });
    await credentials.replace("ghost", "1", { token: stored(second) }, signal);
    expect(await at.attempt({ ...ghost, password: second })).toHaveProperty("allow");
    expect(await at.attempt({ ...ghost, password: first })).toEqual(wrong);
  });

  test("is looked up again once ten thousand others were refused", async () => {
    await using at = await world();
    for (let count = 0; count < 10_001; count++) await at.attempt({ password: `x${count}` });
    await at.attempt({ password: "x1" });
    expect(at.lookups()).toBe(10_001);
    await at.attempt({ password: "x0" });
    expect(at.lookups()).toBe(10_002);
  });
});

describe("the check of ingestion", () => {
  test("asks until it was answered once, one question for many logins, and anew after it was closed", async () => {
    let asked = 0;
    let ready = false;
    await using at = await world({
      ask: async () => {
        asked++;
        if (!ready) throw new Error("not ready");
        return {};
      },
    });
    const attempts = await Promise.all([at.attempt(), at.attempt(), at.attempt()]);
    expect(attempts).toEqual(Array(3).fill({ deny: "ingestion_not_ready" }));
    expect(asked).toBe(1);
    expect(await at.store.credentials.revoke("nobody", signal)).toEqual([]);
    ready = true;
    for (let count = 0; count < 3; count++) expect(await at.attempt()).toHaveProperty("allow");
    expect(asked).toBe(2);
    at.ingestion.reset();
    await at.attempt();
    expect(asked).toBe(3);
  });
});

test("a device that is refused for a while is not let in with its right password until then, and others are", async () => {
  await using at = await world();
  at.throttle.refuse("d", 10_000);
  at.throttle.refuse("d", 1_000);
  at.throttle.refuse("other", 60_000);
  await at.clock.advance(9_999);
  expect(await at.attempt()).toEqual(throttled);
  await at.clock.advance(1);
  expect(await at.attempt()).toHaveProperty("allow");
});

describe("a refusal is reported", () => {
  test("with its reason, address, client id and whether there is such a device", async () => {
    await using at = await world();
    await at.attempt();
    await at.attempt({ password: "x" });
    await at.attempt({ mqttClientId: "other" });
    await at.attempt({ user: "ghost", mqttClientId: "ghost" });
    await at.attempt({ user: "no/id", mqttClientId: "" });
    at.throttle.refuse("d", 10_000);
    await at.attempt();
    const here = { name: "login_refused", address: "10.0.0.1" } as const;
    expect(at.reported).toEqual([
      { ...here, id: "d", reason: "wrong_password", client_id: "d", registered: true },
      { ...here, id: "d", reason: "wrong_client_id", client_id: "other", registered: true },
      { ...here, id: "ghost", reason: "unknown_device", client_id: "ghost", registered: false },
      { ...here, id: "no/id", reason: "bad_user_name", client_id: "", registered: false },
      { ...here, id: "d", reason: "throttled", client_id: "d", registered: true },
    ]);
  });

  test("with what is wrong with a login that is throttled, since a right one would be admitted", async () => {
    await using at = await world();
    for (let count = 0; count < 11; count++) await at.attempt({ password: "x" });
    expect(await at.attempt({ password: "x" })).toEqual(throttled);
    expect(at.reported.at(-1)).toMatchObject({ reason: "wrong_password" });
  });

  test("without a password", async () => {
    await using at = await world();
    const password = createSecret("device");
    await at.attempt({ password });
    expect(JSON.stringify(at.reported)).not.toContain(password);
  });
});
