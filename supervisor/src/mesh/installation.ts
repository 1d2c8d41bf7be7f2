import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createAccountKeyPair } from "@devmesh/device-broker/nkey";
import { z } from "zod";
import { StartFailure, systemErrorCode } from "../process/errors.ts";
import { replaceFile } from "./data-folder.ts";

/** The secrets of one installation: made at its first start, kept in `DATA_DIR/installation.json` (mode 0600). */
const Installation = z.object({
  created_at: z.iso.datetime(),
  /** Password of each user of the broker. */
  passwords: z.record(z.string(), z.string().min(20)),
  /** The account key pair that signs answers of the auth callout; nats-server has the public key. */
  issuer: z.object({ seed: z.string().min(1), public_key: z.string().min(1) }),
  /** AES-256 key, base64, that encrypts stored keys. */
  key_encryption_key: z.base64(),
  /** Base64 of 32 bytes that the secrets of webhooks are derived from; absent from a former release's file. */
  webhook_key: z.base64().optional(),
});
export type Installation = z.infer<typeof Installation>;

/** One with all secrets of this release. */
export type WholeInstallation = Installation & { readonly webhook_key: string };

/** Reads the secrets; null when there are none yet. Throws a {@link StartFailure} when they are unreadable. */
export async function readInstallation(path: string): Promise<Installation | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return null;
    throw new StartFailure(`${path} cannot be read; it holds the secrets of this installation.`, {
      cause: error,
    });
  }
  try {
    return Installation.parse(JSON.parse(text));
  } catch (cause) {
    throw new StartFailure(
      `${path} is damaged; it holds the secrets of this installation: restore it from a backup, or start with another DATA_DIR.`,
      { cause },
    );
  }
}

/** The secrets with a password for each of `users`; what is missing is made and stored first. */
export async function ensureInstallation(path: string, users: readonly string[]): Promise<WholeInstallation> {
  const known = await readInstallation(path);
  const webhook_key = known?.webhook_key ?? randomBytes(32).toString("base64");
  if (known?.webhook_key === webhook_key && users.every((user) => user in known.passwords))
    return { ...known, webhook_key };
  const made = known ? { ...known, passwords: { ...known.passwords } } : newInstallation();
  const installation = { ...made, webhook_key };
  for (const user of users) installation.passwords[user] ??= randomBytes(32).toString("base64url");
  await replaceFile(path, `${JSON.stringify(installation, null, 2)}\n`);
  return installation;
}

function newInstallation(): Installation {
  const issuer = createAccountKeyPair();
  return {
    created_at: new Date().toISOString(),
    passwords: {},
    issuer: { seed: issuer.seed, public_key: issuer.publicKey },
    key_encryption_key: randomBytes(32).toString("base64"),
  };
}
