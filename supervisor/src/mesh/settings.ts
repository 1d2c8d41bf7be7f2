import { resolve } from "node:path";
import { z } from "zod";
import { StartFailure } from "../process/errors.ts";

const aPort = "must be a port, 1 to 65535";
const Port = z
  .string()
  .regex(/^[1-9]\d{0,4}$/, aPort)
  .transform(Number)
  .refine((port) => port <= 65_535, aPort);
const aDuration = "must be a whole number of milliseconds, 0 to 600000";
/** An empty variable counts as unset. */
const optional = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema.optional());
/** One or more addresses, comma-separated. */
const addresses = (protocol: RegExp, error: string) =>
  z
    .string()
    .transform((text) => text.split(",").map((address) => address.trim()))
    .pipe(z.array(z.url({ protocol, error })));
const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const withDefault = <T extends z.ZodType>(schema: T, value: string) =>
  z.preprocess((given) => (given === undefined || given === "" ? value : given), schema);

/** The supervisor's environment (README.md, Configure). */
const Environment = z.object({
  HOST: withDefault(z.string(), "127.0.0.1"),
  MQTT_HOST: optional(z.string()),
  NATS_HOST: withDefault(z.string(), "127.0.0.1"),
  PORT: withDefault(Port, "8080"),
  MQTT_PORT: withDefault(Port, "1883"),
  NATS_PORT: withDefault(Port, "4222"),
  MQTT_WS_PORT: optional(Port),
  BROKER_SYNC: withDefault(
    z
      .string()
      .regex(/^(always|[1-9]\d{0,5}(ms|s|m))$/, "must be a duration such as 500ms, 1s or 2m, or always"),
    "100ms",
  ),
  MQTT_TLS_CERT: optional(z.string()),
  MQTT_TLS_KEY: optional(z.string()),
  DATA_DIR: withDefault(z.string(), "./.data"),
  PUBLIC_URL: optional(z.url({ protocol: /^https?$/, error: "must begin with http:// or https://" })),
  OTA_PUBLIC_URL: optional(z.url({ protocol: /^https?$/, error: "must begin with http:// or https://" })),
  MQTT_PUBLIC_URL: optional(
    z.url({ protocol: /^mqtts?$/, hostname: /./, error: "must be mqtt://HOST or mqtts://HOST" }),
  ),
  NATS_URL: optional(addresses(/^(nats|tls)$/, "must be nats://HOST:PORT, or several with commas between")),
  MQTT_URL: optional(addresses(/^mqtts?$/, "must be mqtt://HOST:PORT, or several with commas between")),
  STORE_URL: optional(z.string()),
  SMTP_URL: optional(z.string()),
  MASTER_KEY: optional(z.string()),
  KEY_ENCRYPTION_KEY: optional(z.string()),
  WEBHOOK_KEY: optional(z.string()),
  WEBHOOK_ALLOW_NETWORKS: z.string().optional(),
  TRUST_PROXY: optional(z.string()),
  DRAIN_MS: withDefault(
    z.coerce.number(aDuration).int(aDuration).min(0, aDuration).max(600_000, aDuration),
    "10000",
  ),
  LOG_LEVEL: withDefault(z.enum(logLevels, `must be one of ${logLevels.join(", ")}`), "info"),
});

/** Names of the variables that configure the supervisor. */
export const settingNames = Object.keys(Environment.shape);

/** How one mesh runs. */
export type MeshSettings = Readonly<ReturnType<typeof meshSettings>>;

/** Reads the environment. Throws a {@link StartFailure} that names each wrong variable; values may be secrets. */
export function meshSettings(env: NodeJS.ProcessEnv) {
  const parsed = Environment.safeParse(env);
  if (!parsed.success) {
    const wrong = new Set(parsed.error.issues.map(({ path, message }) => `${String(path[0])}: ${message}`));
    throw new StartFailure(`The environment is not right: ${[...wrong].join("; ")}.`);
  }
  const values = parsed.data;
  if ((values.MQTT_TLS_CERT === undefined) !== (values.MQTT_TLS_KEY === undefined)) {
    throw new StartFailure("MQTT_TLS_CERT and MQTT_TLS_KEY go together: one of them is not set.");
  }
  if (values.MQTT_URL !== undefined && values.NATS_URL === undefined) {
    throw new StartFailure(
      "MQTT_URL names the listeners of the servers that NATS_URL names, which is not set.",
    );
  }
  const [firstServer] = values.NATS_URL ?? [];
  const publicUrl = (values.PUBLIC_URL ?? httpUrl(values.HOST, values.PORT)).replace(/\/+$/, "");
  const isLocal =
    [values.HOST, hostOf(publicUrl)].every(isLoopback) && (values.TRUST_PROXY ?? "off") === "off";
  return {
    /** Of the gateway. */
    host: values.HOST,
    /** Of MQTT and its WebSocket. */
    mqttHost: values.MQTT_HOST ?? values.HOST,
    /** Of the broker's port for the services. */
    natsHost: values.NATS_HOST,
    port: values.PORT,
    mqttPort: values.MQTT_PORT,
    /** With `natsUrls`, that of the first. */
    natsPort: firstServer === undefined ? values.NATS_PORT : Number(new URL(firstServer).port || 4222),
    /** MQTT over WebSocket; undefined without it. */
    mqttWebsocketPort: values.MQTT_WS_PORT,
    /** How often the broker syncs what it stores to the disk; `always`: before each acknowledgement. */
    brokerSync: values.BROKER_SYNC,
    mqttTls:
      values.MQTT_TLS_CERT && values.MQTT_TLS_KEY
        ? { certFile: resolve(values.MQTT_TLS_CERT), keyFile: resolve(values.MQTT_TLS_KEY) }
        : undefined,
    /** Absolute. */
    dataDir: resolve(values.DATA_DIR),
    /** For links in mails and downloads of firmware, without a trailing slash. */
    publicUrl,
    /** Of the gateway, which checks it; undefined: no proxy. */
    trustProxy: values.TRUST_PROXY,
    /** Where devices download firmware; undefined: at `publicUrl`. */
    otaPublicUrl: values.OTA_PUBLIC_URL,
    /** Where devices reach the broker; undefined: where it listens. */
    mqttPublicUrl: values.MQTT_PUBLIC_URL,
    /** External servers. Empty: the mesh starts its own. */
    natsUrls: values.NATS_URL ?? [],
    /** Their MQTT listeners. Empty: on the host of the first, at `mqttPort`. */
    mqttUrls: values.MQTT_URL ?? [],
    storeUrl: values.STORE_URL,
    smtpUrl: values.SMTP_URL,
    masterKey: values.MASTER_KEY,
    keyEncryptionKey: values.KEY_ENCRYPTION_KEY,
    webhookKey: values.WEBHOOK_KEY,
    /** Where nobody but this machine reaches the API, also by a proxy, its own receivers are allowed. */
    webhookAllowNetworks: values.WEBHOOK_ALLOW_NETWORKS ?? (isLocal ? "127.0.0.0/8,::1/128" : ""),
    logLevel: values.LOG_LEVEL,
    /** Longest wait of a stopping service for running calls, in milliseconds. */
    drainMs: values.DRAIN_MS,
  };
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** `http://HOST:PORT`, an IPv6 address in brackets. */
export function httpUrl(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
