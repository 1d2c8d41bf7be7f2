import { z } from "zod";
import { DeviceId } from "./device-id.ts";
import { Timestamp, TimestampInput } from "./time.ts";

/** First part of every secret, so that a leaked one is known for what it is (api.md, Keys). */
export const keyPrefixes = {
  master: "mk",
  session: "sk",
  device_key: "dk",
  customer: "ck",
  public_key: "pk",
  device: "dt",
} as const;

/** First part of a ticket, by which a device downloads firmware (api.md, Firmware). */
export const ticketPrefix = "ot";

const prefixes = [...Object.values(keyPrefixes), ticketPrefix].join("|");

/** Every secret within a text: `<prefix>_` and 32 base62 characters. */
export const secretsInText = new RegExp(`(${prefixes})_[0-9A-Za-z]{32}`, "g");

/** A text with the prefix alone of every secret in it. */
export const redactSecrets = (text: string): string => text.replaceAll(secretsInText, "$1_[redacted]");

/** A secret that {@link redactSecrets} has replaced. */
export const redactedSecret = new RegExp(`(${prefixes})_\\[redacted\\]`);

/** A secret within a text that is not a part of a longer word. */
export const secretWord = new RegExp(`(?<![0-9A-Za-z])${secretsInText.source}(?![0-9A-Za-z])`);

/** One secret and nothing else. */
export const secretPattern = new RegExp(`^${secretsInText.source}$`);

/** A master or device key. `id` is no secret and may be part of URLs. */
export const ApiKey = z
  .object({
    id: z.string().describe("Id of the key in URLs; no secret."),
    key: z
      .string()
      .nullable()
      .describe(
        "The secret; null after its creation where keys are revealed once only (`KEYS_REVEAL=once`).",
      ),
    access: z.enum(["full", "device"]).describe("`full` for a master key, `device` for a device key."),
    device_id: DeviceId.nullable().describe("The device of a device key; null for a master key."),
    name: z.string().nullable().describe("What people call the key."),
    created_at: Timestamp.describe("When it was created."),
    last_used: Timestamp.nullable().describe("When it was last used, exact to a minute; null before."),
    expires_at: Timestamp.nullable().describe("When it stops working; null for never."),
  })
  .meta({
    id: "ApiKey",
    description: "A master or device key.",
    example: {
      id: "0198c2a0b7f0",
      key: "dk_4fT9wXq2LmZ8sVb1NcR6yKp3HdGj7uAe",
      access: "device",
      device_id: "pump-1",
      name: "Boiler room tablet",
      created_at: "2026-01-31T12:00:00.000Z",
      last_used: null,
      expires_at: "2099-12-31T12:00:00.000Z",
    },
  });
export type ApiKey = z.infer<typeof ApiKey>;

/** The body of `POST /keys`; none makes a master key, `device_id` a device key. */
export const ApiKeyInput = z
  .strictObject({
    access: z
      .enum(["full", "device"])
      .optional()
      .describe("`full` for a master key, `device` for a device key; follows from `device_id` if left out."),
    device_id: DeviceId.optional().describe("The device of a device key."),
    name: z.string().max(256).nullable().optional().describe("What people call the key."),
    expires_at: TimestampInput.nullable()
      .optional()
      .describe("When it stops working, in the future; null or left out for never."),
  })
  .meta({
    id: "ApiKeyInput",
    description: "A key to create; nothing makes a master key.",
    example: { device_id: "pump-1", name: "Boiler room tablet", expires_at: "2099-12-31T12:00:00Z" },
  });
export type ApiKeyInput = z.infer<typeof ApiKeyInput>;
