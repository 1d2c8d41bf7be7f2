import { join } from "node:path";
import { mesh, type ServiceName } from "@devmesh/contracts/mesh";
import { definedMembers } from "@devmesh/service-kit/defined-members";
import type { DataFolder } from "./data-folder.ts";
import type { Installation } from "./installation.ts";
import { httpUrl, type MeshSettings, settingNames } from "./settings.ts";

/** Variables that a service gets from the supervisor alone, if at all; the others are inherited. */
const notInherited: ReadonlySet<string> = new Set([
  ...settingNames,
  "NATS_USER",
  "NATS_PASSWORD",
  "NATS_DEVICES_PASSWORD",
  "OUTBOX_DIR",
  "MASTER_KEY_FILE",
  "AUTH_ISSUER_SEED",
  "OPS_PORT",
  "NODE_CHANNEL_FD",
]);

/** What the environment of a service is made from. */
export interface ServiceEnvironmentOptions {
  readonly settings: MeshSettings;
  readonly folder: DataFolder;
  readonly installation: Installation;
  readonly natsUrl: string;
  readonly mqttUrl: string;
  /** Where devices reach the broker. */
  readonly mqttPublicUrl: string;
  readonly mqttTlsCert: string | undefined;
  /** The supervisor's own environment, for the settings that services read themselves. */
  readonly inherited: NodeJS.ProcessEnv;
}

/**
 * The environment of one service: its credentials and settings, and what it inherits from the supervisor. It holds no
 * secret of another service.
 */
export function serviceEnvironment(
  service: ServiceName,
  options: ServiceEnvironmentOptions,
): NodeJS.ProcessEnv {
  const { settings, folder, installation, natsUrl, inherited } = options;
  const env = {
    ...Object.fromEntries(Object.entries(inherited).filter(([name]) => !notInherited.has(name))),
    LOG_LEVEL: settings.logLevel,
    DRAIN_MS: String(settings.drainMs),
    NATS_URL: natsUrl,
    NATS_USER: service,
    NATS_PASSWORD: installation.passwords[service],
    NATS_DEVICES_PASSWORD: installation.passwords[`${service}.devices`],
    OPS_PORT: "0",
    STORE_URL: mesh[service].store ? storeUrlOf(service, settings, folder) : undefined,
    ...ownSettings(service, options),
  };
  return definedMembers(env);
}

/**
 * `STORE_URL` of one service. Of the mesh's `STORE_URL`, `sqlite:` names the folder of the services' files, and the
 * database of a `mongodb:` URL is the prefix of their databases.
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
  { settings, folder, installation, mqttUrl, mqttPublicUrl, mqttTlsCert }: ServiceEnvironmentOptions,
): NodeJS.ProcessEnv {
  switch (service) {
    case "gateway":
      return {
        HOST: settings.host,
        PORT: String(settings.port),
        PUBLIC_URL: settings.publicUrl,
        TRUST_PROXY: settings.trustProxy,
        MQTT_PUBLIC_URL: mqttPublicUrl,
        MASTER_KEY_FILE: folder.masterKey,
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
    case "alerts":
      return { PUBLIC_URL: settings.publicUrl };
    case "jobs":
      return { PUBLIC_URL: settings.publicUrl, OTA_PUBLIC_URL: settings.otaPublicUrl };
    case "webhooks":
      return {
        WEBHOOK_KEY: settings.webhookKey ?? installation.webhook_key,
        WEBHOOK_ALLOW_NETWORKS: settings.webhookAllowNetworks,
        PUBLIC_URL: settings.publicUrl,
        GATEWAY_URLS: [httpUrl(settings.host, settings.port), settings.otaPublicUrl]
          .filter((url) => url !== undefined)
          .join(","),
      };
    case "rpc-bridge":
      return { MQTT_URL: mqttUrl, MQTT_TLS_CERT: mqttTlsCert };
    default:
      return {};
  }
}
