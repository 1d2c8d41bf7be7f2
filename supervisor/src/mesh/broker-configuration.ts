import { brokerClients } from "@devmesh/contracts/mesh";
import { type BrokerConfigOptions, brokerConfig, brokerUsers } from "@devmesh/device-broker/broker-config";
import { type DataFolder, replaceFile } from "./data-folder.ts";
import { ensureInstallation, type Installation } from "./installation.ts";
import type { MeshSettings } from "./settings.ts";

/** The secrets of an installation with a password for each user of the broker; made at the first start. */
export function installationOf(path: string): Promise<Installation> {
  const users = brokerUsers(brokerClients).map(({ name }) => name);
  return ensureInstallation(path, users);
}

/** Where a nats-server of the mesh listens and stores, and its cluster. */
export type BrokerPlace = Omit<BrokerConfigOptions, "users" | "issuerPublicKey">;

/** The configuration of a nats-server of the mesh, with a user for each service. It holds passwords. */
export function meshBrokerConfig(place: BrokerPlace, installation: Installation): string {
  return brokerConfig(brokerClients, {
    ...place,
    users: installation.passwords,
    issuerPublicKey: installation.issuer.public_key,
  });
}

/** Writes the configuration into the data folder (mode 0600). */
export async function writeBrokerConfig(
  settings: MeshSettings,
  folder: DataFolder,
  installation: Installation,
): Promise<void> {
  const { natsHost, mqttHost, natsPort, mqttPort, mqttWebsocketPort, mqttTls, brokerSync } = settings;
  const place: BrokerPlace = {
    host: natsHost,
    mqttHost,
    ports: {
      nats: natsPort,
      mqtt: mqttPort,
      ...(mqttWebsocketPort === undefined ? {} : { websocket: mqttWebsocketPort }),
    },
    storeDir: folder.jetstream,
    syncInterval: brokerSync,
    ...(mqttTls === undefined ? {} : { tls: mqttTls }),
  };
  await replaceFile(folder.brokerConfig, meshBrokerConfig(place, installation));
}
