import { join } from "node:path";
import { installationOf, meshBrokerConfig } from "@devmesh/supervisor/mesh/broker-configuration";
import { type NatsServerPlace, startNatsServer, type TestNatsServer } from "./nats-server.ts";
import { tempFolder } from "./temp-folder.ts";

/** A nats-server configured as the mesh's own, without any service. */
export interface TestBroker extends TestNatsServer {
  /** Passwords by name: `<service>` of the user in MESH, `<service>.devices` of the one in DEVICES. */
  readonly passwords: Readonly<Record<string, string>>;
  /** Seed that signs answers of the auth callout; MQTT logins need a service that signs them. */
  readonly issuerSeed: string;
  /** The environment with which a service logs in to this broker. */
  environmentOf(service: string): Record<string, string>;
}

/** Starts a nats-server with the launcher's configuration: every user, every permission, MQTT. */
export async function startBroker(): Promise<TestBroker> {
  const folder = await tempFolder();
  const installation = await installationOf(join(folder.path, "installation.json"));
  await folder.remove();
  const config = ({ port, mqttPort, websocketPort, storeDir }: NatsServerPlace) =>
    meshBrokerConfig(
      { host: "127.0.0.1", ports: { nats: port, mqtt: mqttPort, websocket: websocketPort }, storeDir },
      installation,
    );
  const server = await startNatsServer({ config });
  const { passwords } = installation;
  return Object.defineProperties(
    {
      passwords,
      issuerSeed: installation.issuer.seed,
      environmentOf(service: string) {
        const env: Record<string, string> = { NATS_URL: server.url, NATS_USER: service };
        if (passwords[service]) env.NATS_PASSWORD = passwords[service];
        const inDevices = passwords[`${service}.devices`];
        if (inDevices) env.NATS_DEVICES_PASSWORD = inDevices;
        return env;
      },
    },
    // Not spread: `pid` is a getter, and changes with each restart.
    Object.getOwnPropertyDescriptors(server),
  ) as TestBroker;
}
