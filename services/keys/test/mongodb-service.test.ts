import { readFile } from "node:fs/promises";
import { ServiceError } from "@devmesh/service-kit/errors";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { startTcpProxy, type TcpProxy } from "@devmesh/testkit/tcp-proxy";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type KeysWorld, type RunningKeys, startKeysIn, startWorld } from "./running-keys.ts";

const reasonOf = (answer: Promise<unknown>) =>
  answer.then(
    () => "answered",
    (error: unknown) => (error instanceof ServiceError ? error.reason : String(error)),
  );

describeOverMongodb("keys over MongoDB", (mongodb) => {
  let world: KeysWorld;
  let database: TestDatabase;
  let proxy: TcpProxy;
  let viaProxy: { readonly STORE_URL: string };
  beforeEach(async () => {
    world = await startWorld();
    database = mongodb().newDatabase();
    proxy = await startTcpProxy(mongodb().port);
    viaProxy = { STORE_URL: database.storeUrlBehind(proxy.port) };
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await proxy.close();
    await database[Symbol.asyncDispose]();
  });

  const masterKeyIn = async (service: RunningKeys) => (await readFile(service.masterKeyFile, "utf8")).trim();

  describe("two replicas", () => {
    let replicas: readonly RunningKeys[];
    beforeEach(async () => {
      const env = { STORE_URL: database.storeUrl };
      replicas = await Promise.all([startKeysIn(world, { env }), startKeysIn(world, { env })]);
    });
    afterEach(async () => {
      for (const service of replicas) await service[Symbol.asyncDispose]();
    });
    const first = () => {
      const [service] = replicas;
      if (service === undefined) throw new Error("no replica");
      return service;
    };

    test("that start at once on an empty store have one master key, which the file holds", async () => {
      const { items } = await first().call("listKeys", {});
      expect(items).toHaveLength(1);
      const key = await masterKeyIn(first());
      expect(items[0]?.key).toBe(key);
      expect(await first().call("verify", { key })).toMatchObject({ principal: { kind: "master" } });
    });

    test("refuse a revoked key from the answer on, and each gateway gets the event", async () => {
      await first().call("issueCredentials", { device_id: "pump" });
      for (let round = 0; round < 5; round++) {
        const { id, key } = await first().call("createKey", { device_id: "pump" });
        expect(await first().call("verify", { key: key ?? "" })).toMatchObject({ key_id: id });
        await first().call("deleteKey", { id });
        // Whichever replica is asked.
        const asked = Array.from({ length: 8 }, () => reasonOf(first().call("verify", { key: key ?? "" })));
        expect(new Set(await Promise.all(asked))).toEqual(new Set(["key_invalid"]));
        for (const { revoked } of replicas) await eventually(() => revoked.includes(id));
      }
    });

    test("leave one master key of many that are deleted at once", async () => {
      const made = await Promise.all(Array.from({ length: 5 }, () => first().call("createKey", {})));
      const { items } = await first().call("listKeys", {});
      expect(items).toHaveLength(made.length + 1);
      const endings = await Promise.all(items.map(({ id }) => reasonOf(first().call("deleteKey", { id }))));
      expect(endings.toSorted()).toEqual([...made.map(() => "answered"), "last_master_key"]);
      expect((await first().call("listKeys", {})).items).toHaveLength(1);
    });
  });

  test("a store that goes away is reported in time and needs no restart when it is back", async () => {
    await using service = await startKeysIn(world, { env: viaProxy });
    const key = await masterKeyIn(service);
    await service.ready();
    proxy.cut();
    const asked = performance.now();
    await expect(service.ready()).rejects.toThrow();
    expect(performance.now() - asked).toBeLessThan(10_000);
    for (const call of [
      service.call("verify", { key }),
      service.call("createKey", {}),
      service.call("issueCredentials", { device_id: "pump" }),
      service.call("invite", { email: "ann@example.com" }),
    ]) {
      expect(await reasonOf(call)).toBe("unavailable");
    }
    proxy.restore();
    await eventually(() => service.ready().then(() => true));
    expect(await service.call("verify", { key })).toMatchObject({ principal: { kind: "master" } });
  });

  test("a store that says nothing any more ends calls at their deadline, and readiness before", async () => {
    await using service = await startKeysIn(world, { env: viaProxy });
    const key = await masterKeyIn(service);
    proxy.stall();
    const asked = performance.now();
    const verifying = reasonOf(service.call("verify", { key }));
    await expect(service.ready()).rejects.toThrow();
    expect(performance.now() - asked).toBeLessThan(10_000);
    expect(await verifying).toBe("deadline_exceeded");
    proxy.restore();
    await eventually(() => service.ready().then(() => true));
    expect(await service.call("verify", { key })).toMatchObject({ principal: { kind: "master" } });
  });

  test("times of last use that could not be written are written once the store is back", async () => {
    await using service = await startKeysIn(world, { env: viaProxy });
    const key = await masterKeyIn(service);
    await service.call("verify", { key });
    proxy.cut();
    await service.clock.advance(5_000);
    // The driver looks for a server for as long in real time.
    expect(await reasonOf(service.call("verify", { key }))).toBe("unavailable");
    proxy.restore();
    await eventually(async () => {
      await service.clock.advance(5_000);
      return (await service.call("listKeys", {})).items[0]?.last_used !== null;
    });
  });

  test("devices are refused while the store is away, not counted as failed, and let in when it is back", async () => {
    await world.provisionDeviceStreams();
    await using service = await startKeysIn(world, {
      env: { ...viaProxy, LOGIN_FAILURES_PER_DEVICE_MINUTE: "1" },
      // The broker ends admissions by its own clock.
      clock: new ManualClock(new Date()),
    });
    const { token } = await service.call("issueCredentials", { device_id: "pump" });
    const connect = () => connectMqttDevice({ url: world.broker.mqttUrl, id: "pump", token });
    await (await connect()).leave();
    proxy.cut();
    for (let attempt = 0; attempt < 3; attempt++) await expect(connect()).rejects.toThrow();
    proxy.restore();
    await eventually(() => service.ready().then(() => true));
    // With its one failure used up it would be refused for the next minute, which the clock does not bring.
    await (await connect()).leave();
  });
});
