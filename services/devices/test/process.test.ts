import type { Principal } from "@devmesh/contracts/principal";
import { eventually } from "@devmesh/testkit/eventually";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type StartedService, spawnService, startService } from "@devmesh/testkit/service-process";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { call, type ProcessFixture, startProcessFixture } from "./process-fixture.ts";

const master: Principal = { kind: "master" };

/** The service as it is started for real: its own process, its own broker user, real MQTT connections. */
describe("the process of the service", () => {
  let fixture: ProcessFixture;
  let service: StartedService;
  beforeAll(async () => {
    fixture = await startProcessFixture();
    service = await startService("devices", fixture.environment());
  });
  afterAll(async () => {
    await service.end();
    await fixture[Symbol.asyncDispose]();
  });

  const isOnline = async (id: string) =>
    (await fixture.devices.readDevice({ id, principal: master }, call())).device.online;

  test("follows a device's MQTT connections, over its own restart too", async () => {
    const { token } = await fixture.devices.createDevice({ id: "pump" }, call());
    expect(await isOnline("pump")).toBe(false);
    const device = await connectMqttDevice({ url: fixture.broker.mqttUrl, id: "pump", token });
    await eventually(() => isOnline("pump"));
    await service.end();
    service = await startService("devices", fixture.environment());
    expect(await isOnline("pump")).toBe(true);
    expect(await service.metrics()).toMatch(/^devmesh_devices_online 1$/m);
    const beforeLeaving = Date.now();
    await device.leave();
    await eventually(async () => !(await isOnline("pump")));
    const { device: left } = await fixture.devices.readDevice({ id: "pump", principal: master }, call());
    expect(Date.parse(String(left.last_seen))).toBeGreaterThanOrEqual(beforeLeaving - 1);
    expect(await service.metrics()).toMatch(/^devmesh_devices_online 0$/m);
  });

  test("rotating the token ends the connection before the answer, and leaves one with the new token open", async () => {
    const { token } = await fixture.devices.createDevice({ id: "fan" }, call());
    const device = await connectMqttDevice({ url: fixture.broker.mqttUrl, id: "fan", token });
    const closed = device.closed();
    const next = await fixture.devices.rotateToken({ id: "fan" }, call());
    await closed;
    await expect(connectMqttDevice({ url: fixture.broker.mqttUrl, id: "fan", token })).rejects.toThrow();
    const again = await connectMqttDevice({ url: fixture.broker.mqttUrl, id: "fan", token: next.token });
    await again.publish("fan/connected", "", 1);
    expect(again.client.connected).toBe(true);
    await again.leave();
  });

  test("deleting ends the connection and frees the id within thirty seconds", async () => {
    const { token } = await fixture.devices.createDevice({ id: "lamp" }, call());
    const device = await connectMqttDevice({ url: fixture.broker.mqttUrl, id: "lamp", token });
    const closed = device.closed();
    await fixture.devices.deleteDevice({ id: "lamp" }, call());
    await closed;
    const created = await eventually(
      async () => fixture.devices.createDevice({ id: "lamp" }, call()).catch(() => null),
      { withinMs: 25_000 },
    );
    expect(created).toMatchObject({ id: "lamp", online: false, last_seen: null });
    expect(fixture.wiped).toEqual([["lamp"]]);
  });

  test("a second process is refused the store in one sentence, and the first ends orderly", async () => {
    await using second = spawnService("devices", fixture.environment());
    expect(await second.ended).toBe(1);
    expect(second.output()).toContain("runs as one replica");
    expect(await service.end()).toBe(0);
    service = await startService("devices", fixture.environment());
    expect((await fixture.devices.listDevices({}, call())).items.map(({ id }) => id)).toEqual([
      "pump",
      "fan",
      "lamp",
    ]);
  });
});
