import { ServiceError } from "@devmesh/service-kit/errors";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { eventually } from "@devmesh/testkit/eventually";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { call, type DevicesFixture, type ServiceLife, startDevicesFixture } from "./devices-fixture.ts";

let mesh: DevicesFixture;
let life: ServiceLife;
beforeEach(async () => {
  mesh = await startDevicesFixture();
  life = await mesh.start();
});
afterEach(async () => {
  await mesh[Symbol.asyncDispose]();
});

const { signal } = new AbortController();
const reasonOf = (answer: Promise<unknown>) =>
  answer.then(
    () => "answered",
    (error: unknown) => (error instanceof ServiceError ? error.reason : String(error)),
  );
const create = (id: string) => mesh.devices.createDevice({ id }, call());
const drop = (id: string, timeoutMs = 5_000) => mesh.devices.deleteDevice({ id }, call(timeoutMs));
const deletedEvents = () => mesh.received.filter(({ name }) => name === "deleted").map(({ id }) => id);
const cleanedUp = async () => (await operations()).length === 0;
const operations = async () =>
  (await life.store.listOperations(signal)).map(({ operation }) => operation.kind);

/** The process dies when a fake gets to this point, and the next one is started. Answers whether that one runs. */
function crashAt(point: string): () => boolean {
  let failure: unknown;
  let runs = false;
  const restart = async () => {
    await life.crash();
    life = await mesh.start();
    runs = true;
  };
  mesh.onCall = (name) => {
    if (name !== point) return;
    mesh.onCall = () => undefined;
    restart().catch((error: unknown) => {
      failure = error;
    });
  };
  return () => {
    if (failure !== undefined) throw failure;
    return runs;
  };
}

describe("deleting a device", () => {
  test("ends its access before the answer, cleans up in order, and only then gives the id away", async () => {
    await create("pump");
    mesh.clientIds.set("pump", ["pump", "pump:1"]);
    const [one, two] = [mesh.broker.login("pump"), mesh.broker.login("pump", { serverId: "S2" })];
    const other = mesh.broker.login("pump-2");
    mesh.calls.length = 0;
    await drop("pump");
    expect(mesh.credentials.has("pump")).toBe(false);
    expect(mesh.broker.closed).toEqual([one, two]);

    expect(
      await reasonOf(mesh.devices.readDevice({ id: "pump", principal: { kind: "master" } }, call())),
    ).toBe("device_not_found");
    expect(
      await reasonOf(
        mesh.devices.patchDevice({ id: "pump", principal: { kind: "master" }, patch: {} }, call()),
      ),
    ).toBe("device_not_found");
    for (const method of [
      "deleteDevice",
      "readDelta",
      "readCredentials",
      "rotateToken",
      "rotatePublicKey",
      "readPresence",
    ] as const) {
      expect(await reasonOf(mesh.devices[method]({ id: "pump" }, call()))).toBe("device_not_found");
    }
    expect((await mesh.devices.listDevices({}, call())).items).toEqual([]);
    expect(await reasonOf(create("pump"))).toBe("device_being_deleted");
    expect(mesh.calls).toEqual(["keys.revokeDevice pump"]);
    // The clock has not moved since the deletion began.
    await eventually(() => deletedEvents().includes("pump"));

    // A login that was under way when access ended.
    const late = mesh.broker.login("pump");
    mesh.clientIds.set("pump", ["pump", "pump:1", "pump:late"]);
    const began = mesh.clock.monotonicMs();
    await mesh.until(cleanedUp);
    expect(deletedEvents()).toEqual(["pump"]);
    expect(mesh.clock.monotonicMs() - began).toBeLessThan(30_000);
    expect(mesh.broker.closed).toEqual([one, two, late]);
    expect(mesh.calls).toEqual([
      "keys.revokeDevice pump",
      "keys.revokeDevice pump",
      "jobs.dropDevice pump",
      "data.purgeDevice pump",
      "webhooks.purgeDevice pump",
      "rpc-bridge.wipeDevice pump [pump,pump:1,pump:late]",
      "data.admitDevice pump",
      "keys.forgetDevice pump",
    ]);
    expect(mesh.broker.open).toEqual([other]);
    expect(await create("pump")).toMatchObject({ id: "pump", last_seen: null, shadow: { version: 0 } });
  });

  test("the event has the labels that the device had, also where a later attempt publishes it", async () => {
    const shadow = { tags: { labels: ["site-1", "new"] } };
    await mesh.devices.createDevice({ id: "pump", shadow }, call());
    let away = true;
    mesh.onCall = (name) => {
      if (away && name === "keys.revokeDevice pump") throw ServiceError.of("unavailable");
    };
    expect(await reasonOf(drop("pump"))).toBe("unavailable");
    away = false;
    await mesh.until(cleanedUp);
    const [deleted] = mesh.received.filter(({ name }) => name === "deleted");
    expect(deleted?.payload).toMatchObject({ id: "pump", labels: ["site-1", "new"] });
  });

  test("connections are closed again only six seconds after the first time", async () => {
    await create("pump");
    await drop("pump");
    const late = mesh.broker.login("pump");
    await mesh.clock.advance(5_900);
    expect(mesh.broker.closed).toEqual([]);
    await mesh.until(() => mesh.broker.closed.length === 1);
    expect(mesh.broker.closed).toEqual([late]);
  });

  test("a service that is away delays the clean-up and loses nothing of it", async () => {
    await create("pump");
    let failures = 0;
    mesh.onCall = (name) => {
      if (!name.startsWith("data.purgeDevice") || ++failures > 4) return;
      throw ServiceError.of("unavailable");
    };
    await drop("pump");
    await mesh.until(cleanedUp);
    expect(failures).toBeGreaterThan(4);
    expect(mesh.calls.filter((name) => name.startsWith("rpc-bridge"))).toHaveLength(1);
  });

  test("records are gone before the broker is wiped, which takes as many attempts as it needs", async () => {
    await create("pump");
    let attempts = 0;
    mesh.onCall = (name) => {
      if (name.startsWith("rpc-bridge.wipeDevice") && ++attempts <= 6)
        throw ServiceError.of("deadline_exceeded");
    };
    await drop("pump");
    await mesh.until(() => attempts > 2);
    expect(mesh.calls).toContain("data.purgeDevice pump");
    expect(await reasonOf(create("pump"))).toBe("device_being_deleted");
    await mesh.until(cleanedUp);
    expect(attempts).toBe(7);
    await create("pump");
  });

  test("when keys cannot be reached the call fails, and the device is deleted nevertheless", async () => {
    await create("pump");
    let away = true;
    mesh.onCall = (name) => {
      if (away && name === "keys.revokeDevice pump") throw ServiceError.of("unavailable");
    };
    expect(await reasonOf(drop("pump"))).toBe("unavailable");
    expect(await reasonOf(drop("pump"))).toBe("device_not_found");
    expect(deletedEvents()).toEqual([]);
    away = false;
    await mesh.until(cleanedUp);
    expect(deletedEvents()).toEqual(["pump"]);
    expect(mesh.credentials.has("pump")).toBe(false);
  });

  test("connections are closed without their wills, and by the broker alone while the bridge is away", async () => {
    await create("pump");
    const first = mesh.broker.login("pump");
    await mesh.devices.rotateToken({ id: "pump" }, call());
    expect([mesh.broker.closed, mesh.broker.wills]).toEqual([[first], []]);
    mesh.onCall = (name) => {
      if (name.startsWith("rpc-bridge.endSessions")) throw ServiceError.of("unavailable");
    };
    const second = mesh.broker.login("pump");
    await drop("pump");
    expect([mesh.broker.closed, mesh.broker.wills]).toEqual([[first, second], [second]]);
  });

  const steps = [
    "keys.revokeDevice pump",
    "jobs.dropDevice pump",
    "data.purgeDevice pump",
    "webhooks.purgeDevice pump",
    "rpc-bridge.wipeDevice pump [pump:1]",
    "data.admitDevice pump",
    "keys.forgetDevice pump",
  ];
  test.each(steps.flatMap((step) => [step, `after ${step}`]))(
    "a crash at “%s” is made good at the next start",
    async (point) => {
      await create("pump");
      await create("other");
      mesh.clientIds.set("pump", ["pump:1"]);
      mesh.broker.login("pump");
      mesh.calls.length = 0;
      const restarted = crashAt(point);
      void reasonOf(drop("pump", 500));
      await mesh.until(restarted);
      await mesh.until(cleanedUp);
      expect(deletedEvents()).toContain("pump");
      expect(await mesh.kept("deleted", "pump")).toBe(1);
      expect(
        steps.filter(
          (step) => !mesh.calls.some((done) => done === step || done === step.replace("pump:1", "")),
        ),
      ).toEqual([]);
      expect(mesh.credentials.has("pump")).toBe(false);
      expect(mesh.broker.open).toEqual([]);
      expect((await mesh.devices.listDevices({}, call())).items.map(({ id }) => id)).toEqual(["other"]);
      await create("pump");
    },
  );

  test("a crash after the event was published and before the next step leaves one event in the stream", async () => {
    await create("pump");
    const restarted = crashAt("a listing of connections");
    mesh.broker.whileListing = () => mesh.onCall("a listing of connections");
    void reasonOf(drop("pump", 500));
    await mesh.until(restarted);
    await mesh.until(cleanedUp);
    expect(deletedEvents()).toEqual(["pump", "pump"]);
    expect(await mesh.kept("deleted", "pump")).toBe(1);
  });

  test("an operation whose lease has not run out is left to its holder, and taken over when it has", async () => {
    await create("pump");
    const claimed_until = mesh.clock.now().getTime() + 60_000;
    const held = {
      kind: "deleting",
      step: "wipe",
      event_id: "an event",
      client_ids: ["pump:1"],
      token: "another replica",
      claimed_until,
    } as const;
    await life.store.beginOperation("pump", [null], held, signal);
    for (let second = 0; second < 59; second++) await mesh.clock.advance(1_000);
    expect(mesh.calls.filter((name) => name.startsWith("rpc-bridge"))).toEqual([]);
    await mesh.until(cleanedUp);
    expect(mesh.calls).toContain("rpc-bridge.wipeDevice pump [pump:1]");
  });

  test("a deletion whose operation was taken over stops where it is", async () => {
    await create("pump");
    await drop("pump");
    const [pending] = await life.store.listOperations(signal);
    if (!pending) throw new Error("no operation");
    const claimed_until = mesh.clock.now().getTime() + 600_000;
    await life.store.replaceOperation(
      "pump",
      pending.operation.token,
      { ...pending.operation, token: "another", claimed_until },
      signal,
    );
    mesh.calls.length = 0;
    for (let second = 0; second < 30; second++) await mesh.clock.advance(1_000);
    expect(mesh.calls).toEqual([]);
    expect(await operations()).toEqual(["deleting"]);
  });
});

describe("creating a device", () => {
  test.each(["keys.issueCredentials pump", "after keys.issueCredentials pump"])(
    "a crash at “%s” leaves nothing of it",
    async (point) => {
      const restarted = crashAt(point);
      void reasonOf(mesh.devices.createDevice({ id: "pump" }, call(500)));
      await mesh.until(restarted);
      await mesh.until(async () => (await operations()).length === 0);
      expect(mesh.calls).toEqual(
        expect.arrayContaining(["keys.revokeDevice pump", "keys.forgetDevice pump"]),
      );
      expect((await mesh.devices.listDevices({}, call())).items).toEqual([]);
      await mesh.until(() => create("pump").catch(() => false));
      expect(mesh.credentials.has("pump")).toBe(true);
    },
  );

  test("is undone soon when nobody knows whether it was stored, so that it can be tried again", async () => {
    const { store } = life;
    const insert = store.insert.bind(store);
    store.insert = async (...device) => {
      await insert(...device);
      store.insert = insert;
      throw new StoreUnavailable("the answer was lost");
    };
    expect(await reasonOf(create("pump"))).not.toBe("answered");
    await eventually(async () => (await operations()).length === 0);
    expect(await create("pump")).toMatchObject({ id: "pump" });
  });

  test("while it is being created a device is seen by nobody and its id is taken", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    mesh.onCall = (name) => (name.startsWith("keys.issueCredentials") ? held : undefined);
    const creating = create("pump");
    await mesh.until(async () => (await operations()).length === 1);
    expect(await reasonOf(create("pump"))).toBe("device_exists");
    expect(await reasonOf(mesh.devices.readPresence({ id: "pump" }, call()))).toBe("device_not_found");
    expect(await reasonOf(drop("pump"))).toBe("device_not_found");
    expect((await mesh.devices.listDevices({}, call())).items).toEqual([]);
    release();
    expect(await creating).toMatchObject({ id: "pump" });
    expect(await operations()).toEqual([]);
  });
});

describe("rotating a token", () => {
  test("gives a new token, closes connections now and six seconds later, and leaves the device as it was", async () => {
    const { token } = await create("pump");
    const first = mesh.broker.login("pump");
    const next = await mesh.devices.rotateToken({ id: "pump" }, call());
    expect(next.token).not.toBe(token);
    expect(mesh.broker.closed).toEqual([first]);
    expect(await mesh.devices.readCredentials({ id: "pump" }, call())).toMatchObject(next);
    const late = mesh.broker.login("pump", { acceptedMs: mesh.clock.monotonicMs() - 1 });
    expect(await operations()).toEqual(["rotating"]);
    await mesh.until(async () => (await operations()).length === 0);
    expect(mesh.broker.closed).toEqual([first, late]);
    const { device } = await mesh.devices.readDevice({ id: "pump", principal: { kind: "master" } }, call());
    expect(device).toMatchObject({ id: "pump", shadow: { version: 0 } });
  });

  test("leaves a device connected that logs in with the new token, and closes one that was under way with the old", async () => {
    await create("pump");
    const acceptedMs = mesh.clock.monotonicMs();
    await mesh.clock.advance(50);
    await mesh.devices.rotateToken({ id: "pump" }, call());
    await mesh.clock.advance(1);
    const next = mesh.broker.login("pump");
    const late = mesh.broker.login("pump", { acceptedMs });
    await mesh.until(cleanedUp);
    expect(mesh.broker.closed).toEqual([late]);
    expect(mesh.broker.open).toEqual([next]);
  });

  test("leaves it connected also when the first attempt to close connections fails", async () => {
    await create("pump");
    const old = mesh.broker.login("pump");
    await mesh.clock.advance(50);
    mesh.broker.whileListing = () => {
      mesh.broker.whileListing = () => undefined;
      throw ServiceError.of("unavailable");
    };
    await mesh.devices.rotateToken({ id: "pump" }, call());
    await mesh.clock.advance(1);
    const next = mesh.broker.login("pump");
    await mesh.until(cleanedUp);
    expect(mesh.broker.closed).toEqual([old]);
    expect(mesh.broker.open).toEqual([next]);
  });

  test.each(["keys.rotateToken pump", "after keys.rotateToken pump"])(
    "after a crash at “%s” its connections are closed",
    async (point) => {
      await create("pump");
      const open = mesh.broker.login("pump");
      const restarted = crashAt(point);
      void reasonOf(mesh.devices.rotateToken({ id: "pump" }, call(500)));
      await mesh.until(restarted);
      await mesh.until(async () => (await operations()).length === 0);
      expect(mesh.broker.closed).toContain(open);
      expect(mesh.broker.wills).toEqual([]);
      expect(await mesh.devices.readPresence({ id: "pump" }, call())).toMatchObject({ online: false });
    },
  );

  test("a second rotation while the first is being finished keeps its own operation", async () => {
    await create("pump");
    await mesh.devices.rotateToken({ id: "pump" }, call());
    for (let second = 0; second < 4; second++) await mesh.clock.advance(1_000);
    await mesh.devices.rotateToken({ id: "pump" }, call());
    for (let second = 0; second < 3; second++) await mesh.clock.advance(1_000);
    expect(await operations()).toEqual(["rotating"]);
    const late = mesh.broker.login("pump", { acceptedMs: 0 });
    await mesh.until(async () => (await operations()).length === 0);
    expect(mesh.broker.closed).toEqual([late]);
  });

  test("a device is deleted in the middle of a rotation", async () => {
    await create("pump");
    await mesh.devices.rotateToken({ id: "pump" }, call());
    await drop("pump");
    expect(await operations()).toEqual(["deleting"]);
    await mesh.until(cleanedUp);
    expect(deletedEvents()).toEqual(["pump"]);
  });
});

describe("after a restart", () => {
  test("devices are there as they were, and presence is known before the first call", async () => {
    await create("pump");
    await mesh.devices.patchDevice(
      {
        id: "pump",
        principal: { kind: "master" },
        patch: { name: "n", shadow: { state: { desired: { a: 1 } } } },
      },
      call(),
    );
    mesh.broker.login("pump");
    await mesh.until(() => mesh.received.some(({ name }) => name === "online"));
    const read = () => mesh.devices.readDevice({ id: "pump", principal: { kind: "master" } }, call());
    const before = await read();
    await mesh.until(async () => (await life.store.listOnline(signal)).length === 1);
    await life.crash();
    life = await mesh.start();
    const after = await read();
    expect(after.etag).toBe(before.etag);
    expect(after.device).toMatchObject({ online: true, name: "n", shadow: before.device.shadow });
    for (let second = 0; second < 5; second++) await mesh.clock.advance(1_000);
    expect(mesh.received.filter(({ name }) => name === "online")).toHaveLength(1);
  });

  test("a device that went while the service was away is published as offline", async () => {
    await create("pump");
    const connection = mesh.broker.login("pump");
    await mesh.until(async () => (await life.store.listOnline(signal)).length === 1);
    await life.crash();
    mesh.broker.leave(connection);
    life = await mesh.start();
    await mesh.until(() => mesh.received.some(({ name, id }) => name === "offline" && id === "pump"));
    expect(await mesh.devices.readPresence({ id: "pump" }, call())).toMatchObject({ online: false });
  });
});
