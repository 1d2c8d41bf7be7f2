import { ensureDeviceConsumer, provisionDeviceStream } from "@devmesh/device-broker/mqtt-stream";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { createLogger } from "@devmesh/service-kit/logger";
import { meshUser } from "@devmesh/service-kit/subjects";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startNatsServer } from "@devmesh/testkit/nats-server";

/** A broker with devices that log in by name, and the streams that the mesh makes on it. */
export interface DeviceBroker extends AsyncDisposable {
  /** Environment of a data service that uses it. */
  readonly serviceEnvironment: Readonly<Record<string, string>>;
  /** A connection of a service in account MESH. */
  connectService(name: string): Promise<Bus>;
  /** A connection of a service as another user of the broker. */
  connectAs(name: string, user: string): Promise<Bus>;
  /** Connects `pump`, `ab` or `abc`. */
  connectDevice(id: string): Promise<MqttDevice>;
  /** In account DEVICES, with all rights. */
  readonly devicesBus: Bus;
}

const password = "only-for-this-test";
const log = createLogger({ service: "test", level: "silent" });

/** Starts the broker; logs in once by MQTT, since that makes its stream, and makes the consumers. */
export async function startDeviceBroker(): Promise<DeviceBroker> {
  const user = (name: string) => `{ user: "${name}", password: "${password}" }`;
  const server = await startNatsServer({
    mqtt: true,
    config: `
      accounts {
        MESH { jetstream: enabled, users: [ ${["data.mesh", "gateway.mesh"].map(user).join(", ")} ] }
        DEVICES { jetstream: enabled, users: [ ${["data.devices", "set-up", "pump", "ab", "abc"].map(user).join(", ")} ] }
      }`,
  });
  const buses: Bus[] = [];
  const devices: MqttDevice[] = [];
  const connectAs = async (name: string, as: string) => {
    const bus = await connectBus({ url: server.url, name, user: as, password, log });
    buses.push(bus);
    return bus;
  };
  const connectDevice = async (id: string) => {
    const device = await connectMqttDevice({ url: server.mqttUrl, id, token: password });
    devices.push(device);
    return device;
  };
  await (await connectDevice("pump")).leave();
  const devicesBus = await connectAs("set-up", "set-up");
  await provisionDeviceStream(devicesBus, { signal: new AbortController().signal });
  await ensureDeviceConsumer(devicesBus, "data");
  return {
    devicesBus,
    serviceEnvironment: {
      NATS_URL: server.url,
      NATS_USER: "data",
      NATS_PASSWORD: password,
      NATS_DEVICES_PASSWORD: password,
    },
    connectService: (name) => connectAs(name, meshUser(name)),
    connectAs,
    connectDevice,
    async [Symbol.asyncDispose]() {
      await Promise.all(devices.map((device) => device[Symbol.asyncDispose]()));
      await Promise.all(buses.map((bus) => bus.close()));
      await server.stop();
    },
  };
}
