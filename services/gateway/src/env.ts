import { byteSize, ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { z } from "zod";

const rate = (fallback: number) => z.coerce.number().positive().max(1_000_000).default(fallback);

/** `off`, the number of proxies in front, or their addresses, for Express's `trust proxy`. */
const TrustedProxies = z
  .string()
  .regex(/^(off|[1-9]|[0-9A-Fa-f:./,\s]*[:.][0-9A-Fa-f:./,\s]*|loopback|linklocal|uniquelocal)$/, {
    message: "must be off, a number of proxies, or their addresses",
  })
  .default("off")
  .transform((text): false | number | string => {
    if (text === "off") return false;
    return /^\d$/.test(text) ? Number(text) : text;
  });

const CorsOrigins = z
  .string()
  .default("")
  .transform((text) => text.split(",").map((origin) => origin.trim()))
  .transform((origins) => origins.filter((origin) => origin !== ""))
  .refine(
    (origins) => origins.every((origin) => origin === "*" || /^https?:\/\/[^/\s]+$/.test(origin)),
    "must be * or origins such as https://app.example.com, with commas between",
  );

/** The gateway's environment; README.md describes the variables. */
export const GatewayEnv = ServiceEnv.extend({
  HOST: z.string().min(1).default("127.0.0.1"),
  PORT: wholeNumber(8080, 0, 65_535),
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  MQTT_PUBLIC_URL: z.url({ protocol: /^mqtts?$/, hostname: /./ }).optional(),
  MASTER_KEY_FILE: z.string().min(1).optional(),
  WEB_DIR: z.string().min(1).default("web/dist"),
  CORS_ORIGINS: CorsOrigins,
  RATE_MASTER: rate(1000),
  RATE_KEY: rate(50),
  RATE_ANONYMOUS: rate(100),
  TRUST_PROXY: TrustedProxies,
  KEY_CACHE_SIZE: wholeNumber(10_000, 1, 1_000_000),
  KEY_CACHE_MS: wholeNumber(60_000, 1, 60_000),
  REQUEST_TIMEOUT: wholeNumber(15_000, 100, 600_000),
  LAME_DUCK_MS: wholeNumber(0, 0, 60_000),
  NOTIFY_MASTER_LISTENERS: wholeNumber(100, 0, 1_000_000),
  NOTIFY_KEY_LISTENERS: wholeNumber(10, 0, 1_000_000),
  NOTIFY_LISTENERS: wholeNumber(10_000, 0, 1_000_000),
  NOTIFY_BUFFER_BYTES: wholeNumber(1024 * 1024, 1024, 64 * 1024 * 1024),
  MASTER_LARGE_ANSWERS: wholeNumber(200, 1, 1_000_000),
  KEY_LARGE_ANSWERS: wholeNumber(30, 1, 1_000_000),
  LARGE_ANSWERS: wholeNumber(400, 1, 1_000_000),
  FIRMWARE_CACHE_BYTES: byteSize.default(64 * 1024 ** 2),
  HTTP_CONNECTIONS: wholeNumber(20_000, 1, 1_000_000),
  HTTP_CONNECTIONS_PER_ADDRESS: wholeNumber(1_000, 1, 1_000_000),
  SOCKET_TIMEOUT: wholeNumber(120_000, 70_000, 3_600_000),
});
export type GatewayEnv = z.infer<typeof GatewayEnv>;
