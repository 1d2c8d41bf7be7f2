import { resolve } from "node:path";
import { type ServiceName, storeOwners } from "@devmesh/contracts/mesh";
import { StartFailure } from "../process/errors.ts";
import { dataFolder } from "./data-folder.ts";
import { readInstallation } from "./installation.ts";
import { readRunningMesh } from "./mesh-file.ts";
import { serviceEnvironment } from "./service-environment.ts";
import { meshSettings } from "./settings.ts";

/**
 * The environment of a service beside the mesh that runs with a data folder: what the supervisor would give it, changed
 * by `env`, which must hold `STORE_URL` where the mesh has one. Throws a {@link StartFailure} when no such mesh runs,
 * or the service cannot run twice.
 */
export async function environmentBeside(
  dataDir: string,
  service: ServiceName,
  env: NodeJS.ProcessEnv,
): Promise<NodeJS.ProcessEnv> {
  const folder = dataFolder(resolve(dataDir));
  const mesh = await readRunningMesh(folder);
  const installation = await readInstallation(folder.installation);
  if (!installation) throw new StartFailure(`${folder.installation} is missing; start the mesh again.`);
  const settings = meshSettings({
    HOST: mesh.settings.host,
    PORT: String(mesh.settings.port),
    MQTT_PORT: String(mesh.settings.mqtt_port),
    PUBLIC_URL: mesh.settings.public_url,
    ...env,
    DATA_DIR: folder.path,
  });
  if (mesh.services[service]) refuseSecond(service, settings.storeUrl, settings.port === mesh.settings.port);
  return serviceEnvironment(service, {
    settings,
    folder,
    installation,
    natsUrl: mesh.nats_url,
    mqttUrl: mesh.mqtt_url,
    mqttPublicUrl: settings.mqttPublicUrl ?? mesh.mqtt_public_url,
    mqttTlsCert: mesh.mqtt_tls_cert ?? undefined,
    inherited: env,
  });
}

/** An SQLite file serves one process, as does a port. */
function refuseSecond(service: ServiceName, storeUrl: string | undefined, samePort: boolean): void {
  const instead = `start the mesh with npm start -- --without ${service}`;
  if (storeOwners.includes(service) && (storeUrl === undefined || storeUrl.startsWith("sqlite:"))) {
    throw new StartFailure(
      `The mesh runs ${service} already, and an SQLite file serves one process: ${instead}, or give both a MongoDB by STORE_URL.`,
    );
  }
  if (service === "gateway" && samePort) {
    throw new StartFailure(`The mesh runs gateway on this port already: ${instead}, or set PORT.`);
  }
}
