import { isIP } from "node:net";

/** Bytes of the longest header of version 1, and of the longest of version 2 that is taken. */
const maxTextBytes = 107;
const maxBinaryBytes = 16 + 512;

const binarySignature = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const textSignature = Buffer.from("PROXY ", "latin1");

/** The client of a proxied connection; `null` address: the proxy's own connection, such as a health check. */
export interface ProxyHeader {
  readonly address: string | null;
  /** Bytes of the header; the client's own bytes follow. */
  readonly length: number;
}

/** The header of PROXY protocol 1 or 2; `incomplete`: more bytes are needed; `invalid`: it is none. */
export function readProxyHeader(bytes: Buffer): ProxyHeader | "incomplete" | "invalid" {
  if (beginsLike(bytes, textSignature)) return readText(bytes);
  if (beginsLike(bytes, binarySignature)) return readBinary(bytes);
  return "invalid";
}

/** Whether bytes begin with a signature, or may once more have come. */
function beginsLike(bytes: Buffer, signature: Buffer): boolean {
  const length = Math.min(bytes.length, signature.length);
  return bytes.subarray(0, length).equals(signature.subarray(0, length));
}

function readText(bytes: Buffer): ProxyHeader | "incomplete" | "invalid" {
  const end = bytes.subarray(0, maxTextBytes).indexOf("\r\n");
  if (end < 0) return bytes.length < maxTextBytes ? "incomplete" : "invalid";
  const length = end + 2;
  const [, family, source = ""] = bytes.toString("latin1", 0, end).split(" ");
  if (family === "UNKNOWN") return { address: null, length };
  if ((family !== "TCP4" && family !== "TCP6") || isIP(source) !== Number(family.at(-1))) return "invalid";
  return { address: source, length };
}

function readBinary(bytes: Buffer): ProxyHeader | "incomplete" | "invalid" {
  if (bytes.length < 16) return "incomplete";
  const [command = 0, family = 0] = bytes.subarray(12, 14);
  const length = 16 + bytes.readUInt16BE(14);
  if (command >> 4 !== 2 || length > maxBinaryBytes) return "invalid";
  if (bytes.length < length) return "incomplete";
  const isLocal = (command & 0x0f) === 0;
  if (isLocal) return { address: null, length };
  switch (family >> 4) {
    case 1:
      return length < 28 ? "invalid" : { address: bytes.subarray(16, 20).join("."), length };
    case 2:
      return length < 52 ? "invalid" : { address: addressOfSixteen(bytes.subarray(16, 32)), length };
    default:
      return { address: null, length };
  }
}

/** As Node writes an IPv6 address: through `URL`, which shortens zeros. */
function addressOfSixteen(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16));
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
