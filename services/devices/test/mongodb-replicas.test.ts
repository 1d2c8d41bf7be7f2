import type { Principal } from "@devmesh/contracts/principal";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { call, type DevicesFixture, type ServiceLife, startDevicesFixture } from "./devices-fixture.ts";

const { signal } = new AbortController();
const principal: Principal = { kind: "master" };

describeOverMongodb("two replicas of devices on one database", (mongodb) => {
  let database: TestDatabase;
  let mesh: DevicesFixture;
  let first: ServiceLife;
  beforeEach(async () => {
    database = mongodb().newDatabase();
    mesh = await startDevicesFixture({ storeUrl: database.storeUrl });
    first = await mesh.start();
  });
  afterEach(async () => {
    await mesh[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  const create = (id: string) => mesh.devices.createDevice({ id }, call());
  const heardOf = (id: string) => mesh.received.filter((one) => one.id === id).map(({ name }) => name);
  const isOnline = async (id: string) => (await mesh.devices.readPresence({ id }, call())).online;
  const wait = async (ms: number) => {
    for (let waited = 0; waited < ms; waited += 250) await mesh.clock.advance(250);
  };

  test("a hundred patches of ten writers through both step the version a hundred times and lose none", async () => {
    await mesh.start();
    await create("pump");
    const patch = async (at: number) => {
      const shadow = { state: { desired: { [`m${at}`]: at } } };
      const { device } = await mesh.devices.patchDevice({ id: "pump", principal, patch: { shadow } }, call());
      return (device.shadow as { version: number }).version;
    };
    // Patches of one device wait for each other: a hundred at once may take longer than the deadline of the last one.
    const writers = Array.from({ length: 10 }, async (_, writer) => {
      const versions: number[] = [];
      for (let nth = 0; nth < 10; nth++) versions.push(await patch(10 * writer + nth));
      return versions;
    });
    const versions = (await Promise.all(writers)).flat();
    expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, at) => at + 1));
    const { device } = await mesh.devices.readDevice({ id: "pump", principal }, call());
    const { state, version } = device.shadow as { state: { desired: object }; version: number };
    expect([version, Object.keys(state.desired).length]).toEqual([100, 100]);
  });

  test("both know who is connected, and each change is published once", async () => {
    const second = await mesh.start();
    await create("pump");
    const connection = mesh.broker.login("pump");
    await eventually(() => heardOf("pump").includes("online"));
    // Whichever replica is asked.
    for (let asked = 0; asked < 10; asked++) expect(await isOnline("pump")).toBe(true);
    mesh.broker.leave(connection);
    await mesh.until(() => heardOf("pump").includes("offline"));
    for (let asked = 0; asked < 10; asked++) expect(await isOnline("pump")).toBe(false);
    await wait(5_000);
    expect([await mesh.kept("online", "pump"), await mesh.kept("offline", "pump")]).toEqual([1, 1]);
    for (const { store } of [first, second]) {
      await mesh.until(async () => (await store.listOnline(signal)).length === 0);
    }
  });

  test("a replica that starts later publishes nothing again, and the remaining one goes on publishing", async () => {
    await create("pump");
    await create("fan");
    const connection = mesh.broker.login("pump");
    await eventually(() => heardOf("pump").includes("online"));
    await mesh.start();
    await wait(5_000);
    expect([await mesh.kept("online", "pump"), await mesh.kept("offline", "pump")]).toEqual([1, 0]);
    await first.crash();
    // The broker may not have noticed the crash, and give the first question to the replica that is gone.
    await eventually(() => isOnline("pump"));
    mesh.broker.leave(connection);
    mesh.broker.login("fan");
    await mesh.until(() => heardOf("pump").includes("offline") && heardOf("fan").includes("online"));
    await wait(5_000);
    expect([await mesh.kept("online", "pump"), await mesh.kept("offline", "pump")]).toEqual([1, 1]);
    expect([await mesh.kept("online", "fan"), await mesh.kept("offline", "fan")]).toEqual([1, 0]);
  });

  test.each([
    "keys.revokeDevice pump",
    "rpc-bridge.wipeDevice pump [pump:1]",
    "after data.purgeDevice pump",
    "keys.forgetDevice pump",
  ])("a deletion whose replica dies at “%s” is finished by the other", async (point) => {
    await create("pump");
    mesh.clientIds.set("pump", ["pump:1"]);
    let died = false;
    mesh.onCall = async (name) => {
      if (name !== point) return;
      mesh.onCall = () => undefined;
      await mesh.start();
      await first.crash();
      died = true;
    };
    void mesh.devices.deleteDevice({ id: "pump" }, call(500)).catch(() => undefined);
    await mesh.until(() => died);
    // Held by the dead one until its lease runs out.
    expect(await create("pump").catch(({ reason }) => reason)).toBe("device_being_deleted");
    const again = await mesh.until(() => create("pump").catch(() => null));
    expect(again).toMatchObject({ id: "pump", shadow: { version: 0 } });
    expect(heardOf("pump")).toContain("deleted");
    expect(await mesh.kept("deleted", "pump")).toBe(1);
  });

  test("a creation whose replica dies is undone by the other", async () => {
    let died = false;
    mesh.onCall = async (name) => {
      if (name !== "after keys.issueCredentials pump") return;
      mesh.onCall = () => undefined;
      await mesh.start();
      await first.crash();
      died = true;
    };
    void mesh.devices.createDevice({ id: "pump" }, call(500)).catch(() => undefined);
    await mesh.until(() => died);
    await mesh.until(async () => (await create("pump").catch(() => null)) !== null);
    expect(mesh.calls).toContain("keys.revokeDevice pump");
  });

  test("of many creations of one id through both one succeeds", async () => {
    await mesh.start();
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, () =>
          create(`device-${round}`).then(
            () => "created",
            ({ reason }) => reason,
          ),
        ),
      );
      expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(1);
      expect(new Set(outcomes)).toEqual(new Set(["created", "device_exists"]));
    }
  });
});
