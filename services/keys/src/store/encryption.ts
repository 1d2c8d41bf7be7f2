import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";

const formatVersion = 1;
const keyIdBytes = 4;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 1 + keyIdBytes + nonceBytes;

/**
 * Keeps secrets unreadable in the store (AES-256-GCM) and derives what need not be stored.
 * Sealed form: version (1 byte), id of the key (4), nonce (12), tag (16), ciphertext.
 */
export interface Sealer {
  /** Encrypts `plaintext` for one place of the store; `identity` names that place and is authenticated with it. */
  seal(plaintext: string, identity: string): Uint8Array;
  /**
   * Decrypts what was sealed for `identity`.
   * @throws Error when it was sealed with another key, for another place, or was changed.
   */
  open(sealed: Uint8Array, identity: string): string;
  /** A code (HMAC-SHA-256, base64url) that only the holder of the encryption key can make for `message`. */
  authenticate(message: string): string;
  /** Whether `code` is that of `message`, compared in constant time. */
  isAuthentic(message: string, code: string): boolean;
}

/** Makes the sealer of one 32-byte key; each purpose has a key of its own, derived by HKDF. */
export function createSealer(encryptionKey: Uint8Array): Sealer {
  if (encryptionKey.length !== 32) throw new RangeError("an encryption key has 32 bytes");
  const derive = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync("sha256", encryptionKey, "", `devmesh keys ${purpose}`, bytes));
  const sealingKey = derive("sealing", 32);
  const keyId = derive("key id", keyIdBytes);
  const confirmationKey = derive("confirmation", 32);

  const codeOf = (message: string) => createHmac("sha256", confirmationKey).update(message, "utf8").digest();
  return {
    seal(plaintext, identity) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", sealingKey, nonce).setAAD(Buffer.from(identity, "utf8"));
      const ciphertext = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final()]);
      return Buffer.concat([Buffer.of(formatVersion), keyId, nonce, cipher.getAuthTag(), ciphertext]);
    },
    open(sealed, identity) {
      const bytes = Buffer.from(sealed);
      if (bytes.length < headerBytes + tagBytes || bytes[0] !== formatVersion) {
        throw new Error("a sealed secret has an unknown form");
      }
      if (!bytes.subarray(1, 1 + keyIdBytes).equals(keyId)) {
        throw new Error("a secret was sealed with another encryption key");
      }
      const nonce = bytes.subarray(1 + keyIdBytes, headerBytes);
      const tag = bytes.subarray(headerBytes, headerBytes + tagBytes);
      const decipher = createDecipheriv("aes-256-gcm", sealingKey, nonce, { authTagLength: tagBytes })
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
