import { createPrivateKey, sign } from "node:crypto";
import { createAccount, fromSeed, Prefix } from "@nats-io/nkeys";
import { Codec } from "@nats-io/nkeys/lib/codec.js";

/** What PKCS #8 puts before the 32 bytes of an Ed25519 key (RFC 8410). */
const pkcs8Header = Buffer.from("302e020100300506032b657004220420", "hex");

/** An account's key pair in the text forms of nkeys. The seed is a secret. */
export interface AccountKeyPair {
  /** Begins with `SA`. */
  readonly seed: string;
  /** Begins with `A`. */
  readonly publicKey: string;
}

/** A new key pair, for the issuer of device logins. */
export function createAccountKeyPair(): AccountKeyPair {
  const pair = createAccount();
  return { seed: Buffer.from(pair.getSeed()).toString(), publicKey: pair.getPublicKey() };
}

/** Signs with the key of a seed. */
export interface NkeySigner {
  readonly publicKey: string;
  sign(data: string): Buffer;
}

/** A signer from an account's seed; throws a `TypeError` that does not repeat it when it is none. */
export function accountSigner(seed: string): NkeySigner {
  const text = Buffer.from(seed);
  const bytes = decoded("seed of an account", () => {
    const { prefix, buf } = Codec.decodeSeed(text);
    return prefix === Prefix.Account ? buf : null;
  });
  const der = Buffer.concat([pkcs8Header, bytes]);
  // By OpenSSL, which signs many times faster than the library.
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return {
    publicKey: fromSeed(text).getPublicKey(),
    sign: (data) => sign(null, Buffer.from(data), key),
  };
}

/** The 32 bytes of a key. The library's own errors, as any of a wrong length, become a `TypeError` without the text. */
function decoded(kind: string, decode: () => Uint8Array | null): Uint8Array {
  let bytes: Uint8Array | null = null;
  try {
    bytes = decode();
  } catch {
    // Refused below.
  }
  if (bytes?.length !== 32) throw new TypeError(`not the ${kind}`);
  return bytes;
}
