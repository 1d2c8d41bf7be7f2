import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import type { KeyStore } from "../store/key-store.ts";

const formatVersion = 1;
const keyIdBytes = 4;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 1 + keyIdBytes + nonceBytes;

/**
 * Encryption of secrets in the store (AES-256-GCM), and codes that need not be stored.
 * Encrypted form: version (1 byte), id of the key (4), nonce (12), tag (16), ciphertext.
 */
export interface Encryption {
  /** Encrypts `plaintext` for one row of the store; `identity` names the row and is authenticated with it. */
  encrypt(plaintext: string, identity: string): Uint8Array;
  /** @throws Error when it was encrypted with another key or for another row, or was changed. */
  decrypt(encrypted: Uint8Array, identity: string): string;
  /** The code of a message (HMAC-SHA-256, base64url), which only the holder of the encryption key can make. */
  authenticate(message: string): string;
  /** Whether `code` belongs to `message`, compared in constant time. */
  isAuthentic(message: string, code: string): boolean;
}

/** Encryption by one 32-byte key, from which HKDF derives a key for each purpose. */
export function createEncryption(encryptionKey: Uint8Array): Encryption {
  if (encryptionKey.length !== 32) throw new RangeError("an encryption key has 32 bytes");
  const derive = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync("sha256", encryptionKey, "", `devmesh keys ${purpose}`, bytes));
  // As a key object: `node:crypto` would make one of the bytes at each use.
  const secretKey = createSecretKey(derive("sealing", 32));
  const keyId = derive("key id", keyIdBytes);
  const confirmationKey = derive("confirmation", 32);

  const codeOf = (message: string) => createHmac("sha256", confirmationKey).update(message, "utf8").digest();
  return {
    encrypt(plaintext, identity) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", secretKey, nonce).setAAD(Buffer.from(identity, "utf8"));
      const ciphertext = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final()]);
      return Buffer.concat([Buffer.of(formatVersion), keyId, nonce, cipher.getAuthTag(), ciphertext]);
    },
    decrypt(encrypted, identity) {
      const bytes = Buffer.from(encrypted);
      if (bytes.length < headerBytes + tagBytes || bytes[0] !== formatVersion) {
        throw new Error("an encrypted secret has an unknown form");
      }
      if (!bytes.subarray(1, 1 + keyIdBytes).equals(keyId)) {
        throw new Error("a secret was encrypted with another encryption key");
      }
      const nonce = bytes.subarray(1 + keyIdBytes, headerBytes);
      const tag = bytes.subarray(headerBytes, headerBytes + tagBytes);
      const decipher = createDecipheriv("aes-256-gcm", secretKey, nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(identity, "utf8"))
        .setAuthTag(tag);
      const ciphertext = bytes.subarray(headerBytes + tagBytes);
      return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString("utf8");
    },
    authenticate: (message) => codeOf(message).toString("base64url"),
    isAuthentic(message, code) {
      const expected = codeOf(message);
      const given = Buffer.from(code, "base64url");
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}

const checkName = "encryption_key_check";

/** @throws Error with one clear sentence when the store, by a value of its first start, has another encryption key. */
export async function checkEncryptionKey(
  store: Pick<KeyStore, "putSettingIfAbsent">,
  encryption: Encryption,
  signal: AbortSignal,
): Promise<void> {
  const value = encryption.encrypt("devmesh", checkName);
  const stored = await store.putSettingIfAbsent(checkName, value, signal);
  try {
    encryption.decrypt(stored, checkName);
  } catch (cause) {
    throw new Error(
      "KEY_ENCRYPTION_KEY is not the key that this store was encrypted with: set the former one, its secrets cannot be read otherwise",
      { cause },
    );
  }
}
