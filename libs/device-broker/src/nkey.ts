import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** The byte that begins the public form of each kind of nkey. */
const prefixes = { account: 0, user: 20 << 3, server: 13 << 3 } as const;

/** The kinds of nkey that occur here. */
export type NkeyKind = keyof typeof prefixes;

const seedPrefix = 18 << 3;
const base32Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** What PKCS #8 and SPKI put before the 32 bytes of an Ed25519 key (RFC 8410). */
const pkcs8Header = Buffer.from("302e020100300506032b657004220420", "hex");
const spkiHeader = Buffer.from("302a300506032b6570032100", "hex");

/** An account's key pair in the text forms of nkeys. The seed is a secret. */
export interface AccountKeyPair {
  /** Begins with `SA`. */
  readonly seed: string;
  /** Begins with `A`. */
  readonly publicKey: string;
}

/** A new key pair, for the issuer of device logins. */
export function createAccountKeyPair(): AccountKeyPair {
  const { privateKey } = generateKeyPairSync("ed25519");
  const raw = privateKey.export({ format: "der", type: "pkcs8" }).subarray(pkcs8Header.length);
  // Five bits of the seed's prefix, then the eight of the kind's, over two bytes.
  const head = [seedPrefix | (prefixes.account >> 5), (prefixes.account & 31) << 3];
  return { seed: encode(Buffer.concat([Buffer.from(head), raw])), publicKey: publicKeyOf(privateKey) };
}

/** Signs with the key of a seed. */
export interface NkeySigner {
  readonly publicKey: string;
  sign(data: string): Buffer;
}

/** A signer from an account's seed; throws a `TypeError` that does not repeat it when it is none. */
export function accountSigner(seed: string): NkeySigner {
  const bytes = decode(seed);
  const isSeed = bytes.length === 34 && (bytes.readUInt8(0) & 0xf8) === seedPrefix;
  const kind = isSeed ? ((bytes.readUInt8(0) & 7) << 5) | (bytes.readUInt8(1) >> 3) : -1;
  if (kind !== prefixes.account) throw new TypeError("not the seed of an account key");
  const key = createPrivateKey({
    key: Buffer.concat([pkcs8Header, bytes.subarray(2)]),
    format: "der",
    type: "pkcs8",
  });
  const publicKey = publicKeyOf(key);
  return { publicKey, sign: (data) => sign(null, Buffer.from(data), key) };
}

/** The Ed25519 key of a public nkey of that kind; throws a `TypeError` for anything else. */
export function verifyingKey(nkey: string, kind: NkeyKind): KeyObject {
  const bytes = decode(nkey);
  if (bytes.length !== 33 || bytes.readUInt8(0) !== prefixes[kind])
    throw new TypeError(`not the public key of a ${kind}`);
  return createPublicKey({
    key: Buffer.concat([spkiHeader, bytes.subarray(1)]),
    format: "der",
    type: "spki",
  });
}

function publicKeyOf(privateKey: KeyObject): string {
  const raw = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(spkiHeader.length);
  return encode(Buffer.concat([Buffer.from([prefixes.account]), raw]));
}

/** Base32 (RFC 4648, no padding) of the bytes and their CRC-16, little end first. */
function encode(bytes: Buffer): string {
  const checksum = Buffer.alloc(2);
  checksum.writeUInt16LE(crc16(bytes));
  let text = "";
  let held = 0;
  let bits = 0;
  for (const byte of Buffer.concat([bytes, checksum])) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += base32Alphabet[(held >> bits) & 31];
    }
    held &= (1 << bits) - 1;
  }
  return bits === 0 ? text : text + base32Alphabet[(held << (5 - bits)) & 31];
}

function decode(text: string): Buffer {
  const bytes: number[] = [];
  let held = 0;
  let bits = 0;
  for (const letter of text) {
    const value = base32Alphabet.indexOf(letter);
    if (value < 0) throw new TypeError("not an nkey");
    held = (held << 5) | value;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((held >> bits) & 255);
      held &= (1 << bits) - 1;
    }
  }
  const decoded = Buffer.from(bytes);
  const body = decoded.subarray(0, -2);
  // Bits left over must be none, or two texts would name one key.
  if (held !== 0 || decoded.length < 3 || crc16(body) !== decoded.readUInt16LE(decoded.length - 2))
    throw new TypeError("not an nkey");
  return body;
}

/** CRC-16/XMODEM, as nkeys uses it. */
function crc16(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}
