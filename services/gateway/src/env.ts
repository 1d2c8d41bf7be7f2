import { ServiceEnv } from "@devmesh/service-kit/env";
import { z } from "zod";

const wholeNumber = (fallback: number, min: number, max: number) =>
  z.coerce.number().int().min(min).max(max).default(fallback);
const rate = (fallback: number) => z.coerce.number().positive().max(1_000_000).default(fallback);

/** `off`, how many proxies stand in front, or their addresses, as Express's `trust proxy` takes them. */
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

/** Origins that browsers may call from; none by default. */
const CorsOrigins = z
  .string()
  .default("")
  .transform((text) => text.split(",").map((origin) => origin.trim()))
  .transform((origins) => origins.filter((origin) => origin !== ""))
  .refine(
    (origins) => origins.every((origin) => origin === "*" || /^https?:\/\/[^/\s]+$/.test(origin)),
    "must be * or origins such as https://app.example.com, with commas between",
  );

/** The gateway's environment (README.md has the table). */
export const GatewayEnv = ServiceEnv.extend({
  HOST: z.string().min(1).default("127.0.0.1"),
  /** 0: any free port. */
  PORT: wholeNumber(8080, 0, 65_535),
  /** Where clients reach the gateway; stands in the OpenAPI document. */
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** Where devices reach the broker, told to who asks for it; the host 0.0.0.0 stands for that of the gateway. */
  MQTT_PUBLIC_URL: z.url({ protocol: /^mqtts?$/, hostname: /./ }).optional(),
  /** Folder of a build of the dashboard, from the working directory; without a build `/` leads to the API reference. */
  WEB_DIR: z.string().min(1).default("web/dist"),
  CORS_ORIGINS: CorsOrigins,
  /** Requests a second of one master key; the bucket holds twice as many. */
  RATE_MASTER: rate(1000),
  /** Requests a second of one device, public or customer key. */
  RATE_KEY: rate(50),
  /** Requests a second of one address without a key, and failed log-ins of one address. */
  RATE_ANONYMOUS: rate(100),
  TRUST_PROXY: TrustedProxies,
  /** Most keys that are remembered. */
  KEY_CACHE_SIZE: wholeNumber(10_000, 1, 1_000_000),
  /** How long a verified key is believed without asking again, in milliseconds. */
  KEY_CACHE_MS: wholeNumber(60_000, 1, 60_000),
  /** Longest that a request may take, in milliseconds; device calls and streams have their own bounds. */
  REQUEST_TIMEOUT: wholeNumber(15_000, 100, 600_000),
  /**
   * How long a gateway that stops goes on taking requests, not ready any more, so that who spreads requests over
   * gateways learns of it before the port closes; in milliseconds, a part of `DRAIN_MS`.
   */
  LAME_DUCK_MS: wholeNumber(0, 0, 60_000),
  /**
   * Most listeners with one master key: of the notification stream, and as many of `GET /mesh`. So with the next two.
   */
  NOTIFY_MASTER_LISTENERS: wholeNumber(100, 0, 1_000_000),
  /** Most listeners with one key of another kind. */
  NOTIFY_KEY_LISTENERS: wholeNumber(10, 0, 1_000_000),
  /** Most listeners in all. */
  NOTIFY_LISTENERS: wholeNumber(10_000, 0, 1_000_000),
  /** Most bytes that may wait for a listener; one that reads more slowly is closed. */
  NOTIFY_BUFFER_BYTES: wholeNumber(1024 * 1024, 1024, 64 * 1024 * 1024),
  /**
   * Most answers over 64 KB that are on their way at one time to one master key; each holds up to a megabyte until it
   * is read.
   */
  MASTER_LARGE_ANSWERS: wholeNumber(200, 1, 1_000_000),
  /** Most with one key of another kind. */
  KEY_LARGE_ANSWERS: wholeNumber(30, 1, 1_000_000),
  /** Most in all. */
  LARGE_ANSWERS: wholeNumber(400, 1, 1_000_000),
  /** Longest silence of a connection in the middle of a request or an answer, in milliseconds. */
  SOCKET_TIMEOUT: wholeNumber(120_000, 70_000, 3_600_000),
});
export type GatewayEnv = z.infer<typeof GatewayEnv>;
