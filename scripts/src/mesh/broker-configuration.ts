import { type DataFolder, replaceFile } from "./data-folder.ts";
import type { Installation } from "./installation.ts";
import type { MeshSettings } from "./settings.ts";
export const brokerUserNames = () => [
  "gateway",
  "devices",
  "keys",
  "data",
  "rpc-bridge",
  "mailer",
  "data.devices",
  "rpc-bridge.devices",
];

export async function writeBrokerConfig(
  settings: MeshSettings,
  folder: DataFolder,
  installation: Installation,
) {
  const users = Object.entries(installation.passwords).map(
    ([u, p]) => `{user: ${JSON.stringify(u)}, password: ${JSON.stringify(p)}}`,
  );
  await replaceFile(
    folder.brokerConfig,
    `server_name: devmesh
  listen: "${settings.host}:${settings.natsPort}"
  jetstream { store_dir: ${JSON.stringify(folder.jetstream)} }
  mqtt { listen: "${settings.host}:${settings.mqttPort}" }
  accounts { MESH { jetstream: enabled, users: [ ${users.join("\n")} ] }
 SYS { users: [] } }
  system_account: SYS`,
  );
}
