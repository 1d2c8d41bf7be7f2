import { createPublicKey, type KeyObject } from "node:crypto";
import { byteSize, ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { z } from "zod";

/** An Ed25519 key: the base64 lines of its PEM file, without line breaks. */
const Ed25519Key = z.string().transform((text, context): KeyObject => {
  try {
    const key = createPublicKey({ key: Buffer.from(text, "base64"), format: "der", type: "spki" });
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // It is no key at all.
  }
  context.addIssue({ code: "custom", message: "must be the base64 of an Ed25519 public key (SPKI, DER)" });
  return z.NEVER;
});

/** The environment of the service `jobs`. */
export const JobsEnv = ServiceEnv.extend({
  /** `sqlite:<path>` or `mongodb://<hosts>/<database>`. */
  STORE_URL: z.string().min(1),
  /** How many devices are called at a time. */
  JOBS_IN_FLIGHT: wholeNumber(500, 1, 10_000),
  /** How many devices are pushed firmware at a time. */
  JOBS_PUSHES: wholeNumber(200, 1, 10_000),
  /** Days for which executions are kept after their end. */
  JOBS_RETENTION_DAYS: wholeNumber(30, 1, 36_500),
  /** `true`: cancels all that waits, since a restored store does not know what devices have done since. */
  JOBS_HOLD: z
    .enum(["true", "false"])
    .default("false")
    .transform((text) => text === "true"),
  /** Bytes of one file of firmware, and of all. */
  FIRMWARE_MAX_FILE: byteSize.default(100 * 1024 ** 2),
  FIRMWARE_MAX_BYTES: byteSize.default(10 * 1024 ** 3),
  /** Where devices download firmware; the second where the first is not set. */
  OTA_PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  FIRMWARE_PUBLIC_KEY: Ed25519Key.optional(),
});
export type JobsEnv = z.infer<typeof JobsEnv>;
