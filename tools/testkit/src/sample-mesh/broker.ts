import { defineEvent, defineEvents, defineQueue } from "@devmesh/contracts/contract";
import { calls, defineService, subscribesTo } from "@devmesh/contracts/topology";
import {
  answerAuthCallout,
  type LoginDecision,
  type LoginRequest,
} from "@devmesh/device-broker/auth-callout";
import { brokerConfig, brokerUsers } from "@devmesh/device-broker/broker-config";
import { subjectsOfDevice } from "@devmesh/device-broker/device-topic";
import { createAccountKeyPair } from "@devmesh/device-broker/nkey";
import { devicePermissions } from "@devmesh/device-broker/permissions";
import { type Bus, type BusOptions, connectBus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { meshUser } from "@devmesh/service-kit/subjects";
import { z } from "zod";
import { connectMqttDevice, type MqttDevice } from "../mqtt-device.ts";
import { startNatsServer, type TestNatsServer } from "../nats-server.ts";
import { allowingStoreRetained } from "../retained-messages.ts";
import { testLog } from "./buses.ts";
import { greeter } from "./greeter.ts";

/** Events of the greeter. */
export const visits = defineEvents({
  service: "greeter",
  events: { visited: defineEvent(z.object({ id: z.string(), at: z.int() }), ({ id }) => id) },
});

/** A queue of the greeter's. */
export const letters = defineQueue({
  name: "letters",
  job: z.object({ to: z.string() }),
  backoffMs: [10, 10],
  attemptMs: 2_000,
});

/** A mesh with one service of each kind of right. */
export const mesh = {
  greeter: defineService({ serves: greeter, publishes: visits, produces: [letters] }),
  caller: defineService({
    calls: [calls(greeter, ["greet"])],
    subscribes: [subscribesTo(visits, ["visited"])],
  }),
  watcher: defineService({ follows: [subscribesTo(visits, ["visited"])] }),
  onlooker: defineService({ rights: ["discovery"] }),
  postman: defineService({ consumes: [letters] }),
  keys: defineService({ rights: ["auth_callout"] }),
  devices: defineService({ rights: ["device_connections"] }),
  data: defineService({ rights: ["device_data"] }),
  "rpc-bridge": defineService({ rights: ["device_topics"] }),
};

const issuer = createAccountKeyPair();
const passwords = Object.fromEntries(brokerUsers(mesh).map(({ name }) => [name, `secret of ${name}`]));

/** What devices may do in these tests: publish on any topic below their id. */
export function grant({ user }: Pick<LoginRequest, "user">, expiresInMs = 60_000): LoginDecision {
  return {
    allow: {
      deviceId: user,
      publish: { allow: subjectsOfDevice(user), deny: [] },
      subscribe: devicePermissions(user).subscribe,
      expiresAt: new Date(Date.now() + expiresInMs),
    },
  };
}

/** A broker configured for `mesh`, with logins of devices answered. */
export interface SampleBroker extends AsyncDisposable {
  readonly server: TestNatsServer;
  /** Decides logins; a test may replace it. Default: any device whose password is `t`. */
  decide: (request: LoginRequest) => Promise<LoginDecision>;
  /** Connects as the user of a service, or as `<service>.devices`. */
  connect(user: string, options?: Partial<BusOptions>): Promise<Bus>;
  device(
    id: string,
    options?: { clientId?: string; password?: string; clean?: boolean },
  ): Promise<MqttDevice>;
  /** The MQTT connection of the bridge. */
  bridge(): Promise<MqttDevice>;
  stop(): Promise<void>;
}

/** Starts a broker configured as a mesh configures it, for services of the tests. */
export async function startBroker(): Promise<SampleBroker> {
  const server = await startNatsServer({
    config: ({ port, mqttPort, websocketPort, storeDir }) =>
      allowingStoreRetained(
        brokerConfig(mesh, {
          host: "127.0.0.1",
          ports: { nats: port, mqtt: mqttPort, websocket: websocketPort },
          storeDir,
          users: passwords,
          issuerPublicKey: issuer.publicKey,
          maxFileStore: 4 * 1024 ** 3,
        }),
      ),
  });
  const buses: Bus[] = [];
  const devices: MqttDevice[] = [];
  const broker: SampleBroker = {
    server,
    decide: async (request) => (request.password === "t" ? grant(request) : { deny: "wrong password" }),
    async connect(user, options = {}) {
      const name = user.replace(/\.devices$/, "");
      const bus = await connectBus({
        url: server.url,
        name,
        user: user === name ? meshUser(name) : user,
        password: passwords[user] ?? "",
        log: testLog,
        ...options,
      });
      buses.push(bus);
      return bus;
    },
    async device(id, { clientId = id, password = "t", clean = true } = {}) {
      const login = { url: server.mqttUrl, id, token: password, clientId };
      const device = await connectMqttDevice(login, { clean });
      devices.push(device);
      return device;
    },
    bridge() {
      const user = "rpc-bridge.devices";
      return broker.device(user, { clientId: "rpc-bridge-1", password: passwords[user] ?? "" });
    },
    async stop() {
      for (const device of devices) device.vanish();
      await Promise.all(buses.map((bus) => bus[natsConnection].close()));
      await server.stop();
    },
    [Symbol.asyncDispose]: () => broker.stop(),
  };
  try {
    const keys = await broker.connect("keys");
    answerAuthCallout(keys, { issuerSeed: issuer.seed }, (request) => broker.decide(request));
    await keys.flush();
  } catch (error) {
    throw new Error(server.log(), { cause: error });
  }
  return broker;
}
