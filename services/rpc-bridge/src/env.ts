import { ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { z } from "zod";

/** The environment of the bridge. */
export const RpcBridgeEnv = ServiceEnv.extend({
  /** The broker's MQTT listener; those of a cluster, comma-separated. */
  MQTT_URL: z
    .string()
    .regex(
      /^mqtts?:\/\/[^\s/@,]+(\s*,\s*mqtts?:\/\/[^\s/@,]+)*$/,
      "must be mqtt://HOST:PORT, or several of it with commas between",
    )
    .default("mqtt://127.0.0.1:1883")
    .transform((urls) => urls.split(",").map((url) => url.trim())),
  /** PEM file of the one certificate that an `mqtts:` listener may show; without it, one for the host of `MQTT_URL`. */
  MQTT_TLS_CERT: z.string().optional(),
  /** Of the user `rpc-bridge.devices`, for NATS and for MQTT. */
  NATS_DEVICES_PASSWORD: z.string().min(1),
  /** Largest frame that is sent to a device, in bytes. */
  RPC_MAX_FRAME_BYTES: wholeNumber(4_096, 256, 262_144),
  /** Calls that wait for a device at one time. */
  RPC_MAX_IN_FLIGHT: wholeNumber(10_000, 1, 1_000_000),
  /**
   * Shadow updates and reads, and as many events, that one device may have handled a second; twenty times as many at
   * once.
   */
  DEVICE_MESSAGE_RATE: wholeNumber(500, 1, 1_000_000),
  /** How long a session is kept at least while its client is away, in hours. */
  KEPT_SESSION_HOURS: wholeNumber(24, 1, 8_760),
  /** What the broker keeps of acknowledged messages at most, in bytes; then it acknowledges no more. */
  DEVICE_STREAM_MAX_BYTES: wholeNumber(1_073_741_824, 1_048_576, Number.MAX_SAFE_INTEGER),
});
export type RpcBridgeEnv = z.infer<typeof RpcBridgeEnv>;
