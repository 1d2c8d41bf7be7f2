import { readFile } from "node:fs/promises";
import { dataFolder } from "./data-folder.ts";
import { readRunningMesh } from "./mesh-file.ts";
import { meshSettings } from "./settings.ts";

/** How a mesh is reached by who holds its master key. */
export interface MeshAccess {
  /** Base address of the REST API, without a slash at its end. */
  readonly url: string;
  readonly mqttUrl: string;
  /** PEM file of the certificate that MQTT over TLS shows; absent without TLS. */
  readonly mqttTlsCert?: string | undefined;
  readonly masterKey: string;
}

/** Access to the mesh that runs with the environment's `DATA_DIR`. Throws a `StartFailure` when none does. */
export async function accessRunningMesh(env: NodeJS.ProcessEnv): Promise<MeshAccess> {
  const folder = dataFolder(meshSettings(env).dataDir);
  const { url, mqtt_url, mqtt_tls_cert } = await readRunningMesh(folder);
  const masterKey = (await readFile(folder.masterKey, "utf8")).trim();
  return { url, mqttUrl: mqtt_url, mqttTlsCert: mqtt_tls_cert ?? undefined, masterKey };
}
