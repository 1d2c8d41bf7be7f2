import { join } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import type { DataFolder } from "./data-folder.ts";
import type { Installation } from "./installation.ts";
import type { MeshSettings } from "./settings.ts";

/** Variables that the launcher hands out itself, each to the services that need it; no service inherits them. */
const HANDED_OUT: ReadonlySet<string> = new Set([
  "HOST",
  "PORT",
  "MQTT_PORT",
  "NATS_PORT",
  "MQTT_WS_PORT",
  "BROKER_SYNC",
  "MQTT_TLS_CERT",
  "MQTT_TLS_KEY",
  "DATA_DIR",
  "PUBLIC_URL",
  "MQTT_PUBLIC_URL",
  "NATS_URL",
  "NATS_USER",
  "NATS_PASSWORD",
  "NATS_DEVICES_PASSWORD",
  "STORE_URL",
  "SMTP_URL",
  "OUTBOX_DIR",
  "MASTER_KEY",
  "MASTER_KEY_FILE",
  "KEY_ENCRYPTION_KEY",
  "AUTH_ISSUER_SEED",
  "MQTT_URL",
  "OPS_PORT",
  "NODE_CHANNEL_FD",
]);

/** Services that keep data in a store. */
export const storeOwners: ReadonlySet<ServiceName> = new Set(["keys", "devices", "data"]);

/** What a service's environment is made of. */
export interface ServiceSurroundings {
  readonly settings: MeshSettings;
  readonly folder: DataFolder;
  readonly installation: Installation;
  readonly natsUrl: string;
  readonly mqttUrl: string;
  /** Where devices reach the broker. */
  readonly mqttPublicUrl: string;
  readonly mqttTlsCert: string | undefined;
  /** The launcher's own environment, for the settings that services read themselves. */
  readonly inherited: NodeJS.ProcessEnv;
}

/**
 * The environment of one service: its own credentials and settings, and of the launcher's environment all that the
 * launcher does not hand out itself. A secret of one service never stands in another's environment.
 */
export function serviceEnvironment(
  service: ServiceName,
  surroundings: ServiceSurroundings,
): NodeJS.ProcessEnv {
  const { settings, folder, installation, natsUrl, inherited } = surroundings;
  const env: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(inherited)) {
    if (!HANDED_OUT.has(name)) env[name] = value;
  }
  env.LOG_LEVEL = settings.logLevel;
  env.DRAIN_MS = String(settings.drainMs);
  env.NATS_URL = natsUrl;
  env.NATS_USER = service;
  env.NATS_PASSWORD = installation.passwords[service];
  env.NATS_DEVICES_PASSWORD = installation.passwords[`${service}.devices`];
  env.OPS_PORT = "0";
  if (storeOwners.has(service)) env.STORE_URL = storeUrlOf(service, settings, folder);
  Object.assign(env, ownSettings(service, surroundings));
  for (const [name, value] of Object.entries(env)) if (value === undefined) delete env[name];
  return env;
}

/**
 * `STORE_URL` of one service. Each has a store of its own: a `sqlite:` URL given for the mesh names the folder of
 * their files, a database in a `mongodb:` URL the beginning of their databases' names.
 */
export function storeUrlOf(
  service: ServiceName,
  { storeUrl: given }: Pick<MeshSettings, "storeUrl">,
  folder: DataFolder,
): string {
  if (given === undefined) return folder.storeUrlOf(service);
  const sqliteFolder = /^sqlite:(?:\/\/)?(?<path>.+)$/.exec(given)?.groups?.path;
  if (sqliteFolder) return `sqlite:${join(sqliteFolder, `${service}.db`)}`;
  return given.replace(
    /^(?<hosts>mongodb(?:\+srv)?:\/\/[^/?]+)\/?(?<name>[^/?]*)/,
    (_, hosts, name) => `${hosts}/${name || "devmesh"}_${service}`,
  );
}

function ownSettings(
  service: ServiceName,
  { settings, folder, installation, mqttUrl, mqttPublicUrl, mqttTlsCert }: ServiceSurroundings,
): NodeJS.ProcessEnv {
  switch (service) {
    case "gateway":
      return {
        HOST: settings.host,
        PORT: String(settings.port),
        PUBLIC_URL: settings.publicUrl,
        MQTT_PUBLIC_URL: mqttPublicUrl,
      };
    case "keys":
      return {
        KEY_ENCRYPTION_KEY: settings.keyEncryptionKey ?? installation.key_encryption_key,
        AUTH_ISSUER_SEED: installation.issuer.seed,
        MASTER_KEY: settings.masterKey,
        MASTER_KEY_FILE: folder.masterKey,
      };
    case "mailer":
      return { SMTP_URL: settings.smtpUrl, OUTBOX_DIR: folder.outbox, PUBLIC_URL: settings.publicUrl };
    case "rpc-bridge":
      return { MQTT_URL: mqttUrl, MQTT_TLS_CERT: mqttTlsCert };
    case "devices":
    case "data":
      return {};
  }
}
