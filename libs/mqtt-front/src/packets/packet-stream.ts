import { decodePacket, packetTypes } from "./decode-packet.ts";
import type { IncomingPacket, ProtocolVersion } from "./packet.ts";
import { malformed, PacketError } from "./packet-reader.ts";
import { type ReasonCode, reasonCodes } from "./reason-code.ts";

/** Bytes of the largest CONNECT, its length and type included. */
export const maxConnectBytes = 2 * 1024;

/** Bytes of a payload with those of its topic and properties in MQTT 5: the largest packet that is taken. */
export const maxPacketBytes = 256 * 1024 + 16 * 1024;

/** Bytes of the buffer for the first piece of a packet that comes in several. */
const firstPieceBytes = 512;

/** Why no further packet can be read; the connection must end. */
export interface PacketFault {
  readonly type: "fault";
  readonly code: ReasonCode;
  /** The fault, for diagnostics. */
  readonly detail: string;
}

/**
 * Cuts the bytes of one connection into packets. A packet that comes in one piece is not copied: its payload is a view
 * of the piece. It holds at most one unfinished packet, and memory only for bytes that have come.
 */
export class PacketStream {
  #version: ProtocolVersion = 4;
  #isConnected = false;
  /** Bytes that came last, read up to `#at`. */
  #piece: Buffer = nothing;
  #at = 0;
  /** The beginning of a packet, up to `#filled`, that ends in a later piece. */
  #beginning: Buffer = nothing;
  #filled = 0;
  #fault: PacketFault | null = null;

  /** Adds bytes. Call it only when {@link next} has returned null, since one piece is kept. */
  push(piece: Buffer): void {
    this.#piece =
      this.#at < this.#piece.length ? Buffer.concat([this.#piece.subarray(this.#at), piece]) : piece;
    this.#at = 0;
  }

  /** Bytes that have come and belong to no packet that was returned. */
  get unreadBytes(): number {
    return this.#filled + this.#piece.length - this.#at;
  }

  /** The next packet; null if it is not complete. After a fault, it returns the fault. */
  next(): IncomingPacket | PacketFault | null {
    if (this.#fault !== null) return this.#fault;
    try {
      const packet = this.#filled > 0 ? this.#finishBeginning() : this.#takeFromPiece();
      if (packet?.type === "connect" && !this.#isConnected) {
        this.#isConnected = true;
        this.#version = packet.version;
      }
      return packet;
    } catch (error) {
      if (!(error instanceof PacketError)) throw error;
      this.#fault = { type: "fault", code: error.code, detail: error.message };
      this.#piece = this.#beginning = nothing;
      this.#at = this.#filled = 0;
      return this.#fault;
    }
  }

  #takeFromPiece(): IncomingPacket | null {
    const length = this.#packetLength(this.#piece, this.#at, this.#piece.length);
    const start = this.#at;
    if (length === null || start + length > this.#piece.length) {
      this.#keep(this.#piece.length, length ?? 0);
      return null;
    }
    this.#at += length;
    return this.#decode(this.#piece, start, this.#at);
  }

  /** Adds as much of the piece as the packet lacks. */
  #finishBeginning(): IncomingPacket | null {
    for (;;) {
      const length = this.#packetLength(this.#beginning, 0, this.#filled);
      if (length !== null && length <= this.#filled) {
        const whole = this.#beginning;
        this.#beginning = nothing;
        this.#filled = 0;
        return this.#decode(whole, 0, length);
      }
      if (this.#at === this.#piece.length) return null;
      // Without a length, one byte more may give it.
      const wanted = length === null ? 1 : length - this.#filled;
      this.#keep(Math.min(this.#at + wanted, this.#piece.length), length ?? 0);
    }
  }

  /** Moves the piece up to `end` into the beginning, whose buffer grows with what came: at most twice of it. */
  #keep(end: number, length: number): void {
    const filled = this.#filled + end - this.#at;
    if (filled > this.#beginning.length) {
      const size = Math.max(filled, Math.min(length, Math.max(firstPieceBytes, 2 * filled)));
      const larger = Buffer.allocUnsafeSlow(size);
      this.#beginning.copy(larger, 0, 0, this.#filled);
      this.#beginning = larger;
    }
    this.#piece.copy(this.#beginning, this.#filled, this.#at, end);
    this.#filled = filled;
    this.#at = end;
    if (this.#at === this.#piece.length) {
      this.#piece = nothing;
      this.#at = 0;
    }
  }

  /** Bytes of the packet from its first one on; null while its length has not come. Throws if it is too large. */
  #packetLength(bytes: Buffer, start: number, end: number): number | null {
    if (start === end) return null;
    if (!this.#isConnected && bytes[start] !== packetTypes.connect << 4)
      throw new PacketError(reasonCodes.protocolError, firstBytesDetail(bytes[start] ?? 0));
    let length = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const at = start + 1 + shift / 7;
      if (at >= end) return null;
      const byte = bytes[at] ?? 0;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        const whole = at + 1 - start + length;
        const most = this.#isConnected ? maxPacketBytes : maxConnectBytes;
        if (whole > most)
          throw new PacketError(
            reasonCodes.packetTooLarge,
            `a packet has ${whole} bytes, of at most ${most}${this.#isConnected ? "" : " for a CONNECT"}`,
          );
        return whole;
      }
    }
    throw malformed("the length of a packet has more than four bytes");
  }

  #decode(bytes: Buffer, start: number, end: number): IncomingPacket {
    let at = start + 1;
    while ((bytes[at] ?? 0) >= 0x80) at++;
    return decodePacket(bytes[start] ?? 0, bytes, at + 1, end, this.#version);
  }
}

const nothing = Buffer.alloc(0);

/** The first byte of a TLS handshake record. */
const tlsHandshake = 0x16;

function firstBytesDetail(first: number): string {
  if (first === tlsHandshake) return "TLS on a port without it";
  return "the first packet is no CONNECT";
}
