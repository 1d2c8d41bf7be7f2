import type { Principal } from "@devmesh/contracts/principal";
import { ServiceError } from "@devmesh/service-kit/errors";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type StartedService, startService } from "@devmesh/testkit/service-process";
import { startTcpProxy, type TcpProxy } from "@devmesh/testkit/tcp-proxy";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { call, type ProcessFixture, startProcessFixture } from "./process-fixture.ts";

const principal: Principal = { kind: "master" };

const reasonOf = (answer: Promise<unknown>) =>
  answer.then(
    () => "answered",
    (error: unknown) => (error instanceof ServiceError ? error.reason : String(error)),
  );

/** Status of `/readyz`, and how long the answer took, in milliseconds. */
async function readiness({ ops }: StartedService) {
  const askedAt = performance.now();
  const { status } = await fetch(`${ops}/readyz`);
  return { status, tookMs: performance.now() - askedAt };
}

describeOverMongodb("processes of the service over MongoDB", (mongodb) => {
  let fixture: ProcessFixture;
  let database: TestDatabase;
  let proxy: TcpProxy;
  const running: StartedService[] = [];
  const start = async (storeUrl: string) => {
    const service = await startService("devices", fixture.environment(storeUrl));
    running.push(service);
    return service;
  };
  beforeEach(async () => {
    fixture = await startProcessFixture();
    database = mongodb().newDatabase();
    proxy = await startTcpProxy(mongodb().port);
  });
  afterEach(async () => {
    for (const service of running.splice(0)) await service.end("SIGKILL");
    await fixture[Symbol.asyncDispose]();
    await proxy.close();
    await database[Symbol.asyncDispose]();
  });
  const read = (id: string) => fixture.devices.readDevice({ id, principal }, call());

  test("an absent store is reported, and waiting work continues when it is back", async () => {
    const service = await start(database.storeUrlBehind(proxy.port));
    const { token } = await fixture.devices.createDevice({ id: "pump" }, call());
    const device = await connectMqttDevice({ url: fixture.broker.mqttUrl, id: "pump", token });
    await eventually(async () => (await read("pump")).device.online);
    expect((await readiness(service)).status).toBe(200);

    proxy.cut();
    const { status, tookMs } = await readiness(service);
    expect(status).toBe(503);
    expect(tookMs).toBeLessThan(10_000);
    const leftAt = Date.now();
    await device.leave();
    const answers = [
      read("pump"),
      fixture.devices.listDevices({}, call()),
      fixture.devices.createDevice({ id: "fan" }, call()),
      fixture.devices.deleteDevice({ id: "pump" }, call()),
      fixture.devices.patchDevice({ id: "pump", principal, patch: { name: "n" } }, call()),
    ];
    const reasons = await Promise.all(answers.map(reasonOf));
    expect(reasons).toEqual(answers.map(() => "unavailable"));

    proxy.restore();
    await eventually(async () => (await readiness(service)).status === 200);
    const { device: left } = await read("pump");
    expect([left.online, left.name]).toEqual([false, null]);
    // From the store, not from the memory of the process: another one reads it there.
    await eventually(async () => (await service.metrics()).includes("devmesh_devices_online 0"));
    await service.end();
    await start(database.storeUrl);
    expect(Date.parse(String((await read("pump")).device.last_seen))).toBeGreaterThanOrEqual(leftAt - 1_000);
    expect(await fixture.devices.createDevice({ id: "fan" }, call())).toMatchObject({ id: "fan" });
  });

  test("a process ends orderly although its store is away", async () => {
    const service = await start(database.storeUrlBehind(proxy.port));
    const { token } = await fixture.devices.createDevice({ id: "pump" }, call());
    proxy.cut();
    const device = await connectMqttDevice({ url: fixture.broker.mqttUrl, id: "pump", token });
    await device.leave();
    expect(await service.end()).toBe(0);
  });

  test("a deletion in the middle of which its process is killed is finished by the other process", async () => {
    const first = await start(database.storeUrl);
    await fixture.devices.createDevice({ id: "pump" }, call());
    const wiping = Promise.withResolvers<void>();
    fixture.onWipe = async () => {
      fixture.onWipe = () => undefined;
      await start(database.storeUrl);
      await first.end("SIGKILL");
      wiping.resolve();
    };
    await fixture.devices.deleteDevice({ id: "pump" }, call());
    await wiping.promise;
    expect(await reasonOf(fixture.devices.createDevice({ id: "pump" }, call()))).toBe("device_being_deleted");
    // The lease of the dead process lasts 15 s.
    const created = await eventually(
      () => fixture.devices.createDevice({ id: "pump" }, call()).catch(() => null),
      { withinMs: 70_000, everyMs: 500 },
    );
    expect(created).toMatchObject({ id: "pump", online: false, shadow: { version: 0 } });
  }, 110_000);
});
