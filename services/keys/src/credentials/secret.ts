import { createHash, randomBytes } from "node:crypto";
import { keyPrefixes } from "@devmesh/contracts/model/api-key";

/** Decides the prefix of a secret (api.md, Keys). */
export type SecretKind = keyof typeof keyPrefixes;

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const characters = 32;
/** Bytes from here on are discarded, so that all characters are equally likely. */
const unbiasedBelow = 256 - (256 % alphabet.length);

/** A new secret: the prefix of its kind, `_`, and 32 base62 characters (190 bits) from the system's CSPRNG. */
export function createSecret(kind: SecretKind): string {
  let text = "";
  while (text.length < characters) {
    for (const byte of randomBytes(characters)) {
      if (byte < unbiasedBelow && text.length < characters) text += alphabet[byte % alphabet.length];
    }
  }
  return `${keyPrefixes[kind]}_${text}`;
}

/** SHA-256 of a secret, to find it by. A secret has 190 random bits, so it needs neither salt nor stretching. */
export function digestSecret(secret: string): Uint8Array {
  return createHash("sha256").update(secret, "utf8").digest();
}
