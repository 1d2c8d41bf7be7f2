import { mesh } from "@devmesh/contracts/mesh";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { grant, type SampleBroker, startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { nkeys } from "@nats-io/nats-core";
import type { LoginRequest } from "../src/auth-callout.ts";
import { brokerUsers } from "../src/broker-config.ts";
import { accountSigner, createAccountKeyPair } from "../src/nkey.ts";

describe("the auth callout", () => {
  let broker: SampleBroker;
  beforeAll(async () => {
    broker = await startBroker();
  });
  afterAll(() => broker.stop());

  test("admits a device over MQTT to the topics it was granted, and no others", async () => {
    await using pump = await broker.device("pump-1");
    expect(await pump.subscribe("pump-1/#")).toBe(0);
    expect(await pump.subscribe("pump-1/#", 1)).toBe(1);
    expect(await pump.subscribe("pump-2/x")).toBe(128);
    expect(await pump.subscribe("#")).toBe(128);
    await pump.publish("pump-1/x", "1", 1);
    await pump.awaitMessage("pump-1/x");
  });

  test("lets a device subscribe to a thousand filters and no more, and leaves it connected", async () => {
    await using pump = await broker.device("pump-1");
    const filters = Array.from({ length: 1_100 }, (_, n) => `pump-1/x/${n}`);
    const answers = await Promise.all(filters.map((filter) => pump.subscribe(filter)));
    expect(answers.filter((granted) => granted === 0).length).toBeGreaterThan(900);
    expect(answers.slice(1_000).every((granted) => granted === 128)).toBe(true);
    await pump.publish("pump-1/x/0", "still here", 1);
    await pump.awaitMessage("pump-1/x/0");
  });

  test("refuses what is denied", async () => {
    await expect(broker.device("pump-1", { password: "wrong" })).rejects.toThrow();
  });

  test("shows the decision all it needs", async () => {
    const seen: LoginRequest[] = [];
    const before = broker.decide;
    broker.decide = async (request) => {
      seen.push(request);
      return grant(request);
    };
    await using _pump = await broker.device("pump-1", { clientId: "pump-1:shell", password: "p" });
    broker.decide = before;
    expect(seen).toEqual([
      {
        user: "pump-1",
        password: "p",
        mqttClientId: "pump-1:shell",
        remoteAddress: "127.0.0.1",
        isMqtt: true,
        serverId: expect.any(String),
        connectionId: expect.any(Number),
      },
    ]);
  });

  test("admits a device over WebSocket as over TCP", async () => {
    const seen: LoginRequest[] = [];
    const before = broker.decide;
    broker.decide = async (request) => {
      seen.push(request);
      return grant(request);
    };
    await using _pump = await connectMqttDevice({
      url: `ws://127.0.0.1:${broker.server.websocketPort}/mqtt`,
      id: "pump-1",
      token: "t",
      clientId: "pump-1",
    });
    broker.decide = before;
    expect(seen).toMatchObject([{ isMqtt: true, mqttClientId: "pump-1" }]);
  });

  test("refuses a login when the decision fails", async () => {
    const before = broker.decide;
    broker.decide = () => Promise.reject(new Error("the store is away"));
    await expect(broker.device("pump-1")).rejects.toThrow();
    broker.decide = before;
  });

  test("ends a connection when its grant expires", async () => {
    const before = broker.decide;
    broker.decide = async (request) => grant(request, 2_000);
    await using pump = await broker.device("pump-1");
    broker.decide = before;
    await pump.closed();
  });

  test("is not asked about users of services, which must know their passwords", async () => {
    await expect(broker.connect("caller", { password: "guess" })).rejects.toThrow();
  });

  test("lets no password into the broker's log", async () => {
    await expect(broker.device("pump-1", { password: "do-not-tell" })).rejects.toThrow();
    expect(broker.server.log()).not.toContain("do-not-tell");
    expect(broker.server.log()).not.toContain("secret of");
  });
});

test("no user of the broker has a name that a device may have, since such a device could never log in", () => {
  const users = brokerUsers(mesh).map(({ user }) => user);
  expect(users).toHaveLength(Object.keys(mesh).length + 3);
  expect(users.filter((user) => DeviceId.safeParse(user).success)).toEqual([]);
});

describe("an account key pair", () => {
  test("has the text form of nkeys, and signs with its public key's name", () => {
    const { seed, publicKey } = createAccountKeyPair();
    expect(seed).toMatch(/^SA[A-Z2-7]{56}$/);
    expect(publicKey).toMatch(/^A[A-Z2-7]{55}$/);
    expect(accountSigner(seed).publicKey).toBe(publicKey);
  });

  test("agrees with the reference implementation", async () => {
    const { seed, publicKey } = createAccountKeyPair();
    const reference = nkeys.fromSeed(new TextEncoder().encode(seed));
    expect(reference.getPublicKey()).toBe(publicKey);
    expect(Buffer.from(reference.sign(new TextEncoder().encode("x")))).toEqual(accountSigner(seed).sign("x"));
  });

  test("of a mistyped seed is refused without repeating it", () => {
    const { seed } = createAccountKeyPair();
    const wrong = `${seed.slice(0, 20)}${seed[20] === "A" ? "B" : "A"}${seed.slice(21)}`;
    expect(() => accountSigner(wrong)).toThrow(TypeError);
    expect(() => accountSigner(wrong)).not.toThrow(wrong);
    expect(() => accountSigner("")).toThrow(TypeError);
  });
});
