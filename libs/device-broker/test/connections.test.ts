import type { Bus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { eventually } from "@devmesh/testkit/eventually";
import { type SampleBroker, startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  closeDeviceConnection,
  type DeviceConnectionEvent,
  listBusiestConnections,
  listDeviceConnections,
  watchDeviceConnections,
} from "../src/connections.ts";

describe("connections of devices", () => {
  let broker: SampleBroker;
  let bus: Bus;
  const events: (DeviceConnectionEvent & { what: string })[] = [];
  beforeAll(async () => {
    broker = await startBroker();
    bus = await broker.connect("devices");
    watchDeviceConnections(bus, {
      connected: (connection) => void events.push({ what: "connected", ...connection }),
      disconnected: (connection) => void events.push({ what: "disconnected", ...connection }),
    });
    await bus.flush();
  });
  afterAll(() => broker.stop());

  test("are told with the device's id, its client id, and the number that names the connection", async () => {
    const pump = await broker.device("pump-1", { clientId: "pump-1:a" });
    const connected = await eventually(() => events.find(({ mqttClientId }) => mqttClientId === "pump-1:a"));
    expect(connected).toMatchObject({
      what: "connected",
      deviceId: "pump-1",
      connectionId: expect.any(Number),
    });
    expect(Math.abs(connected.at.getTime() - Date.now())).toBeLessThan(60_000);
    for (const text of ["1", "22", "333"]) await pump.publish("pump-1/event/x", text, 1);
    pump.vanish();
    const gone = await eventually(() =>
      events.find(
        ({ what, connectionId }) => what === "disconnected" && connectionId === connected.connectionId,
      ),
    );
    expect(gone).toMatchObject({
      deviceId: "pump-1",
      serverId: connected.serverId,
      mqttClientId: "pump-1:a",
      received: { messages: 3, bytes: expect.any(Number) },
    });
    expect(gone.received.bytes).toBeGreaterThanOrEqual(6);
    expect(gone.openMs).toBeGreaterThanOrEqual(gone.at.getTime() - connected.at.getTime());
  });

  test("are listed, of all devices or of one", async () => {
    await using _one = await broker.device("pump-1");
    await using _two = await broker.device("pump-2", { clientId: "pump-2:x" });
    const { servers, connections } = await listDeviceConnections(bus);
    expect(servers.size).toBe(1);
    expect(connections.map(({ deviceId, mqttClientId }) => [deviceId, mqttClientId]).sort()).toEqual([
      ["pump-1", "pump-1"],
      ["pump-2", "pump-2:x"],
    ]);
    expect((await listDeviceConnections(bus, { deviceId: "pump-2" })).connections).toMatchObject([
      { deviceId: "pump-2", serverId: [...servers.keys()][0] },
    ]);
    expect((await listDeviceConnections(bus, { deviceId: "nobody" })).connections).toEqual([]);
  });

  test("are listed by their last activity, with how long the others were idle", async () => {
    await using busy = await broker.device("pump-1");
    await using _idle = await broker.device("pump-2");
    const busiest = async (limit: number) => {
      const { connections, othersIdleMs } = await listBusiestConnections(bus, { limit, servers: 1 });
      return {
        received: connections.map(({ deviceId, received }) => [deviceId, received.messages]),
        othersIdleMs: [...othersIdleMs.values()],
      };
    };
    await busy.publish("pump-1/event/x", "1", 1);
    const one = await eventually(async () => {
      const listed = await busiest(1);
      return listed.received[0]?.[1] === 1 && listed;
    });
    expect(one).toEqual({ received: [["pump-1", 1]], othersIdleMs: [expect.any(Number)] });
    expect(one.othersIdleMs[0]).toBeLessThan(60_000);
    expect(await busiest(100)).toEqual({
      received: [
        ["pump-1", 1],
        ["pump-2", 0],
      ],
      othersIdleMs: [Number.POSITIVE_INFINITY],
    });
  });

  test("are listed with their age, which grows by the broker's clock", async () => {
    await using _pump = await broker.device("pump-1");
    const ageNow = async () => {
      const { connections } = await listDeviceConnections(bus, { deviceId: "pump-1" });
      const { acceptedMs = 0, listedMs = 0 } = connections[0] ?? {};
      return listedMs - acceptedMs;
    };
    const since = performance.now();
    const first = await ageNow();
    expect(first).toBeGreaterThan(0);
    const grown = (await ageNow()) - first;
    expect(grown).toBeGreaterThan(0);
    expect(grown).toBeLessThanOrEqual(performance.now() - since + 2);
  });

  test("are closed one by one, and closing one that is gone says so", async () => {
    const pump = await broker.device("pump-1");
    await using other = await broker.device("pump-1", { clientId: "pump-1:other" });
    const { connections } = await listDeviceConnections(bus, { deviceId: "pump-1" });
    const target = connections.find(({ mqttClientId }) => mqttClientId === "pump-1");
    if (target === undefined) throw new Error("not listed");
    const closed = pump.closed();
    expect(await closeDeviceConnection(bus, target.serverId, target.connectionId)).toBe(true);
    await closed;
    expect(other.client.connected).toBe(true);
    expect(await closeDeviceConnection(bus, target.serverId, target.connectionId)).toBe(false);
  });

  test("cannot be closed on a server that is not there", async () => {
    await expect(closeDeviceConnection(bus, "NOSUCHSERVER", 1)).rejects.toMatchObject({
      reason: "unavailable",
    });
  });

  test("over several pages are all listed", async () => {
    const many = await Promise.all(
      Array.from({ length: 600 }, (_, index) => broker.device("crowd", { clientId: `crowd:${index}` })),
    );
    const { connections } = await listDeviceConnections(bus, { deviceId: "crowd" });
    expect(new Set(connections.map(({ mqttClientId }) => mqttClientId)).size).toBe(600);
    for (const device of many) device.vanish();
  });

  test.each([50, 100, 200])("of which %i end between two pages hide none of the others", async (gone) => {
    const id = `leaving-${gone}`;
    const many = await Promise.all(
      Array.from({ length: 600 }, (_, index) => broker.device(id, { clientId: `${id}:${index}` })),
    );
    const listed = async (from: Bus) =>
      (await listDeviceConnections(from, { deviceId: id })).connections.map(
        ({ connectionId }) => connectionId,
      );
    const before = await listed(bus);
    const oldest = before.toSorted((a, b) => a - b).slice(0, gone);
    let asked = 0;
    const connection: Pick<Bus[typeof natsConnection], "requestMany"> = {
      async requestMany(...query) {
        if (++asked === 2) {
          const [{ serverId } = { serverId: "" }] = (await listDeviceConnections(bus)).connections;
          await Promise.all(oldest.map((number) => closeDeviceConnection(bus, serverId, number)));
          await eventually(async () => (await listed(bus)).length === 600 - gone);
        }
        return bus[natsConnection].requestMany(...query);
      },
    };
    const disturbed = new Proxy(bus, {
      get: (target, name) => (name === natsConnection ? connection : Reflect.get(target, name, target)),
    });
    expect(await listed(disturbed)).toEqual(
      expect.arrayContaining(before.filter((one) => !oldest.includes(one))),
    );
    for (const device of many) device.vanish();
  });
});
