import { keyPrefixes, secretPattern } from "@devmesh/contracts/model/api-key";
import { ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { z } from "zod";

const count = (fallback: number) => wholeNumber(fallback, 1, 1_000_000);

/** The 32 bytes of 64 hex digits or of base64; null for anything else, and when all bytes are equal. */
function decodeKey(text: string): Uint8Array | null {
  const hex = /^[0-9a-f]{64}$/i.test(text);
  if (!hex && !/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return null;
  const bytes = Buffer.from(text, hex ? "hex" : "base64");
  return bytes.length === 32 && new Set(bytes).size > 1 ? bytes : null;
}

/** The environment of this service (README, Environment). */
export const KeysEnv = ServiceEnv.extend({
  /** `sqlite:<path>` or `mongodb://<hosts>/<database>`. */
  STORE_URL: z.string(),
  /** Encrypts every secret in the store. Keep it apart from the store's backups. */
  KEY_ENCRYPTION_KEY: z.string().transform((text, context) => {
    const key = decodeKey(text.trim());
    if (key !== null) return key;
    context.addIssue("it must be 32 random bytes, written as 64 hex digits or as base64");
    return z.NEVER;
  }),
  /** Seed of the account nkey that the broker's auth callout trusts. */
  AUTH_ISSUER_SEED: z
    .string()
    .regex(/^SA[A-Z2-7]{56}$/, "it must be the seed of an account nkey, which begins with SA"),
  /** A master key that exists from the start. */
  MASTER_KEY: z
    .string()
    .refine(
      (key) => secretPattern.test(key) && key.startsWith(`${keyPrefixes.master}_`),
      "it must be mk_ and 32 letters or digits",
    )
    .optional(),
  /** Where a master key is written for the operator; none is written without it. */
  MASTER_KEY_FILE: z.string().min(1).optional(),
  /** `once`: keys are shown only when they are created. */
  KEYS_REVEAL: z.enum(["always", "once"]).default("always"),
  /** Invitations to one address within an hour. */
  MAIL_PER_ADDRESS_HOUR: count(3),
  /** Invitations within an hour for callers of one network address; of IPv6, of one /64. */
  MAIL_PER_NETWORK_HOUR: count(10),
  /** Invitations within an hour in all; a quarter is for confirmed customers. */
  MAIL_PER_HOUR: count(100),
  /** Failed MQTT logins of one device from one address within a minute before they are throttled. */
  LOGIN_FAILURES_PER_DEVICE_MINUTE: count(10),
  /** Failed logins of all devices from one address; loopback is exempt. 0: no bound. */
  LOGIN_FAILURES_PER_ADDRESS_MINUTE: wholeNumber(100, 0, 1_000_000),
});
export type KeysEnv = z.infer<typeof KeysEnv>;
