import { isUtf8 } from "node:buffer";
import { type ReasonCode, reasonCodes } from "./reason-code.ts";

/** Thrown while a packet is read that breaks the protocol; `decode-packet.ts` alone catches it. */
export class PacketError extends Error {
  readonly code: ReasonCode;

  /** `message` says what is wrong, for diagnostics. */
  constructor(code: ReasonCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** An error of {@link PacketReader}: the bytes are no packet of MQTT. */
export function malformed(message: string): PacketError {
  return new PacketError(reasonCodes.malformedPacket, message);
}

/** Reads the members of one packet. It never reads beyond the packet, and buffers are views of its bytes. */
export class PacketReader {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;

  /** Reads `bytes` from `start` up to, but without, `end`. */
  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /** Bytes that are left. */
  get left(): number {
    return this.#end - this.#at;
  }

  byte(): number {
    return this.#bytes[this.#advance(1)] ?? 0;
  }

  uint16(): number {
    return this.#bytes.readUInt16BE(this.#advance(2));
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.#advance(4));
  }

  /** A number of up to 28 bits in one to four bytes. */
  variableInteger(): number {
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw malformed("a variable byte integer has more than four bytes");
  }

  /** A string with its length before it: well-formed UTF-8 without U+0000. */
  string(): string {
    const start = this.#at + 2;
    const end = start + this.uint16();
    if (end > this.#end) throw malformed("a string ends after its packet");
    this.#at = end;
    const text = this.#bytes.toString("utf8", start, end);
    // What is no UTF-8 becomes U+FFFD, which may also have been sent.
    if (text.includes("\ufffd") && !isUtf8(this.#bytes.subarray(start, end)))
      throw malformed("a string is not UTF-8");
    if (text.includes("\0")) throw malformed("a string contains U+0000");
    return text;
  }

  /** Bytes with their length before them. */
  binary(): Buffer {
    const length = this.uint16();
    if (length > this.left) throw malformed("binary data ends after its packet");
    const start = this.#advance(length);
    return this.#bytes.subarray(start, this.#at);
  }

  /** A packet id, which is never 0. */
  packetId(): number {
    const id = this.uint16();
    if (id === 0) throw new PacketError(reasonCodes.protocolError, "a packet id is 0");
    return id;
  }

  /** All that is left. */
  rest(): Buffer {
    return this.#bytes.subarray(this.#advance(this.left), this.#end);
  }

  /** A reader of the next `length` bytes, which are skipped here. */
  part(length: number): PacketReader {
    const start = this.#advance(length);
    return new PacketReader(this.#bytes, start, start + length);
  }

  /** Throws unless all was read. */
  finish(): void {
    if (this.left > 0) throw malformed(`${this.left} bytes follow the end of a packet`);
  }

  #advance(length: number): number {
    const at = this.#at;
    if (at + length > this.#end) throw malformed("a packet is too short");
    this.#at = at + length;
    return at;
  }
}
