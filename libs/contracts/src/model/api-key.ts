import { z } from "zod";
import { DeviceId } from "./device-id.ts";
import { Timestamp, TimestampInput } from "./time.ts";

/** First part of every secret, so that a leaked one is known for what it is (api.md, Keys). */
export const keyPrefixes = {
  master: "mk",
  device_key: "dk",
  customer: "ck",
  public_key: "pk",
  device: "dt",
} as const;

/** `<prefix>_` and 32 base62 characters. */
export const secretPattern = /^(mk|dk|ck|pk|dt)_[0-9A-Za-z]{32}$/;

/** Every secret within a text. */
export const secretsInText = /(mk|dk|ck|pk|dt)_[0-9A-Za-z]{32}/g;

/** A master or device key. `id` is no secret and may be part of URLs. */
export const ApiKey = z
  .object({
    id: z.string(),
    /** The secret; null after its creation when keys are revealed once only. */
    key: z.string().nullable(),
    access: z.enum(["full", "device"]),
    device_id: DeviceId.nullable(),
    name: z.string().nullable(),
    created_at: Timestamp,
    /** One-minute resolution. */
    last_used: Timestamp.nullable(),
    expires_at: Timestamp.nullable(),
  })
  .meta({ id: "ApiKey" });
export type ApiKey = z.infer<typeof ApiKey>;

/** The body of `POST /keys`; none makes a master key, `device_id` a device key. */
export const NewApiKey = z
  .strictObject({
    access: z.enum(["full", "device"]).optional(),
    device_id: DeviceId.optional(),
    name: z.string().max(256).nullable().optional(),
    expires_at: TimestampInput.nullable().optional(),
  })
  .meta({ id: "NewApiKey" });
export type NewApiKey = z.infer<typeof NewApiKey>;
