import { mesh } from "@devmesh/contracts/mesh";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { type KeysWorld, type RunningKeys, startKeysIn, startWorld } from "./running-keys.ts";

let world: KeysWorld;
let service: RunningKeys;
const connected: MqttDevice[] = [];

beforeAll(async () => {
  world = await startWorld();
  // The broker ends admissions by its own clock.
  service = await startKeysIn(world, { clock: new ManualClock(new Date()) });
  await world.provisionDeviceStreams();
});
afterEach(async () => {
  for (const device of connected.splice(0)) await device[Symbol.asyncDispose]();
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

interface Login {
  readonly id: string;
  readonly token: string;
  readonly clientId?: string;
}

async function issue(id: string): Promise<Login> {
  const { token } = await service.call("issueCredentials", { device_id: id });
  return { id, token };
}

async function connect(
  login: Login,
  options: Parameters<typeof connectMqttDevice>[1] = {},
): Promise<MqttDevice> {
  const device = await connectMqttDevice({ url: world.broker.mqttUrl, ...login }, options);
  connected.push(device);
  return device;
}

const refused = /Not authorized|closed the connection/;

describe("a device logs in", () => {
  test("with its id and token, and with a user name that an SDK lengthened", async () => {
    const login = await issue("pump-1");
    await connect(login);
    await connect({ ...login, clientId: "pump-1:aws" }, { username: "pump-1?SDK=Python&Version=1.4" });
  });

  test.each([...Object.keys(mesh), "operator"])("named %s, as a part of the mesh is", async (id) => {
    const device = await connect(await issue(id));
    expect(await device.subscribe(`${id}/#`, 1)).toBe(1);
    await device.publish(`${id}/event/x`, "1", 1);
    await device.awaitMessage(`${id}/event/x`);
  });

  test("not with another's token, a wrong one, none, an API key, or a user name that is no device id", async () => {
    const [login, other] = [await issue("pump-2"), await issue("pump-3")];
    const { key } = await service.call("createKey", { device_id: "pump-2" });
    for (const token of [other.token, `dt_${"0".repeat(32)}`, "", key ?? "", login.token.slice(0, -1)]) {
      await expect(connect({ ...login, token })).rejects.toThrow(refused);
    }
    for (const id of ["db", "DB", "_INBOX", "$SYS", "*", ">", "pump-2/x", "pump-2.x", "?pump-2", "nobody"]) {
      await expect(connect({ ...login, clientId: "pump-2" }, { username: id })).rejects.toThrow(refused);
    }
  });

  test("under its id, its id with a suffix, or no client id at all", async () => {
    const login = await issue("pump-4");
    for (const clientId of ["pump-4", "pump-4:a", `pump-4:${"x".repeat(64)}`, "pump-4:A_b-c:9", ""]) {
      await connect({ ...login, clientId });
    }
  });

  test("not under another's client id, nor one of another form", async () => {
    const [login, other] = [await issue("pump-5"), await issue("pump-5b")];
    const victim = await connect(other);
    const long = await issue("abcdefghij0123456789AB");
    const foreign = [
      "pump-5b",
      "pump-5b:x",
      "pump-5:",
      `pump-5:${"x".repeat(65)}`,
      "pump-5:a$",
      "pump",
      "rpc-bridge",
      long.id,
    ];
    for (const clientId of foreign) {
      await expect(connect({ ...login, clientId })).rejects.toThrow(refused);
    }
    expect(victim.client.connected).toBe(true);
  });

  test("not after its token was rotated or revoked", async () => {
    const login = await issue("pump-6");
    const { token } = await service.call("rotateToken", { device_id: "pump-6" });
    await expect(connect(login)).rejects.toThrow(refused);
    await connect({ ...login, token });
    await service.call("revokeDevice", { device_id: "pump-6" });
    await expect(connect({ ...login, token })).rejects.toThrow(refused);
  });

  test("and its client ids are known when it is revoked", async () => {
    const login = await issue("pump-7");
    for (const clientId of ["pump-7", "pump-7:b", "pump-7:b", "pump-7:a"])
      await connect({ ...login, clientId });
    await expect(connect({ ...login, clientId: "pump-8" })).rejects.toThrow(refused);
    const { client_ids } = await service.call("revokeDevice", { device_id: "pump-7" });
    expect(client_ids).toEqual(["pump-7", "pump-7:a", "pump-7:b"]);
  });

  test("and a client id that has become another device's is no longer known as its own", async () => {
    const [own, foreign] = ["ABCDEFGHIJKLMNOPQRST01", "ABCDEFGHIJKLMNOPQRST02"];
    const login = await issue("pump-10");
    for (const clientId of [own, foreign]) await connect({ ...login, clientId });
    await issue(foreign);
    const { client_ids } = await service.call("revokeDevice", { device_id: "pump-10" });
    expect(client_ids).toEqual([own]);
  });

  test("only over MQTT", async () => {
    const { id, token } = await issue("pump-9");
    const { connectBus } = await import("@devmesh/service-kit/bus");
    const attempt = connectBus({ url: world.broker.url, name: "intruder", user: id, password: token });
    await expect(attempt).rejects.toThrow(/authorization/i);
  });
});

describe("a connected device", () => {
  test("reaches its own topics at each QoS, with kept sessions and retained messages", async () => {
    const login = await issue("valve-1");
    const device = await connect(login, { clean: false });
    for (const qos of [0, 1] as const) {
      for (const topic of ["valve-1/rpc", "valve-1/shadow/#", "valve-1/#"]) {
        expect(await device.subscribe(topic, qos)).toBe(qos);
      }
    }
    for (const qos of [0, 1, 2] as const) {
      device.forget();
      const topic = `valve-1/event/e${qos}`;
      await device.publish(topic, "hello", qos);
      expect((await device.awaitMessage(topic)).payload).toBe("hello");
    }
    await device.publish("valve-1/event/last", "kept", 1, true);
    // Else the kept session would get this delivery again, which is not a retained one.
    await device.awaitMessage("valve-1/event/last");
    await device.leave();
    const again = await connect(login, { clean: false });
    await again.subscribe("valve-1/event/#", 1);
    expect(await again.awaitMessage("valve-1/event/last")).toMatchObject({ payload: "kept", retained: true });
  });

  test("is delivered at QoS 2 what it asked for at QoS 2", async () => {
    const device = await connect(await issue("valve-2"));
    const grants = await device.client.subscribeAsync("valve-2/event/#", { qos: 2 });
    expect(grants[0]?.qos).toBe(2);
    await device.publish("valve-2/event/x", "once", 2);
    expect(await device.awaitMessage("valve-2/event/x")).toMatchObject({ qos: 2, payload: "once" });
  });

  test("is refused every subscription beyond its own topics", async () => {
    await issue("valve-4");
    const device = await connect(await issue("valve-3"));
    const foreign = [
      "#",
      "+",
      "+/rpc",
      "+/#",
      "/#",
      "valve-4/rpc",
      "valve-4/#",
      "valve-3/rpc/#",
      "valve-3/rpc/x",
    ];
    const data = ["db/#", "db/valve-3/#", "db/valve-4/x"];
    const internal = [
      "$MQTT/#",
      "$MQTT/sub/#",
      "$MQTT/sub/+",
      "$MQTT/msgs/#",
      "$MQTT/deliver/pubrel/#",
      "$SYS/#",
      "_INBOX/#",
      "$JS/#",
    ];
    const shared = ["$share/g/valve-3/rpc", "$share/g/valve-4/rpc"];
    for (const topic of [...foreign, ...data, ...internal, ...shared]) {
      for (const qos of [0, 1] as const)
        expect([topic, await device.subscribe(topic, qos)]).toEqual([topic, 128]);
    }
  });

  test("reaches nobody by publishing beyond its own topics", async () => {
    const [login, other] = [await issue("valve-5"), await issue("valve-6")];
    const [device, victim] = [await connect(login), await connect(other)];
    await victim.subscribe("valve-6/#", 1);
    const own = await connect({ ...login, clientId: "valve-5:listener" });
    await own.subscribe("valve-5/#", 1);
    const forbidden = [
      "valve-6/rpc",
      "valve-6/event/x",
      "valve-6/r/a/rpc",
      "valve-5/rpc",
      "valve-5/shadow",
      "valve-5/shadow/delta",
      "valve-5",
    ];
    for (const topic of forbidden)
      for (const qos of [0, 1] as const) await device.publish(topic, "forged", qos);
    await device.publish("valve-5/event/end", "end", 1);
    await own.awaitMessage("valve-5/event/end");
    expect(own.messages.map(({ topic }) => topic)).toEqual(["valve-5/event/end"]);
    await victim.publish("valve-6/event/end", "end", 1);
    await victim.awaitMessage("valve-6/event/end");
    expect(victim.messages.map(({ topic }) => topic)).toEqual(["valve-6/event/end"]);
  });
});

describe("failed logins", () => {
  test("of a device do not keep its right password out", async () => {
    const login = await issue("gate-1");
    for (let at = 0; at < 11; at++) await expect(connect({ ...login, token: "x" })).rejects.toThrow(refused);
    await connect(login);
  });
});

test("no device is admitted before the broker stores what devices publish", async () => {
  await using world = await startWorld();
  const earlier = await startKeysIn(world, { clock: new ManualClock(new Date()) });
  const { token } = await earlier.call("issueCredentials", { device_id: "early-1" });
  const login = { url: world.broker.mqttUrl, id: "early-1", token };
  await expect(connectMqttDevice(login)).rejects.toThrow(refused);
  const bridge = await world.provisionDeviceStreams();
  await using _first = await connectMqttDevice(login);
  const { streams } = await streamManager(bridge);
  const { config } = await streams.info("$MQTT_msgs");
  await streams.update("$MQTT_msgs", { ...config, discard: "old" });
  await using _second = await connectMqttDevice({ ...login, clientId: "early-1:b" });
  await earlier[Symbol.asyncDispose]();
  await using _later = await startKeysIn(world, { clock: earlier.clock });
  await expect(connectMqttDevice({ ...login, clientId: "early-1:c" })).rejects.toThrow(refused);
});
