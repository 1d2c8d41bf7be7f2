import { randomBytes } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const characters = 32;
/** Bytes from here on are discarded, so that all characters are equally likely. */
const unbiasedBelow = 256 - (256 % alphabet.length);

/** A new secret: a prefix, `_`, and 32 base62 characters (190 bits) from the system's CSPRNG. */
export function randomSecret(prefix: string): string {
  let text = "";
  while (text.length < characters) {
    for (const byte of randomBytes(characters)) {
      if (byte < unbiasedBelow && text.length < characters) text += alphabet[byte % alphabet.length];
    }
  }
  return `${prefix}_${text}`;
}
