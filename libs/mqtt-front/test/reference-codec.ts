import { generate, type Packet, parser } from "mqtt-packet";
import { encodePacket } from "../src/packets/encode-packet.ts";
import type { IncomingPacket, OutgoingPacket, ProtocolVersion } from "../src/packets/packet.ts";
import { type PacketFault, PacketStream } from "../src/packets/packet-stream.ts";

/** The bytes of a packet as the library of most clients in JavaScript writes them. */
export function bytesOf(packet: Packet, version: ProtocolVersion = 4): Buffer {
  return generate(packet, { protocolVersion: version });
}

/** How that library reads what the service writes. */
export function readByReference(packet: OutgoingPacket, version: ProtocolVersion): Packet[] {
  const packets: Packet[] = [];
  const reader = parser({ protocolVersion: version });
  reader.on("packet", (one) => packets.push(one));
  reader.on("error", (error) => {
    throw error;
  });
  reader.parse(encodePacket(packet, { version, maximumPacketSize: Number.POSITIVE_INFINITY }));
  return packets;
}

/** A CONNECT of this version, with what a test changes. */
export function connectBytes(version: ProtocolVersion, change: object = {}): Buffer {
  return bytesOf(
    {
      cmd: "connect",
      protocolId: version === 3 ? "MQIsdp" : "MQTT",
      protocolVersion: version,
      clientId: "pump-1",
      clean: true,
      keepalive: 60,
      username: "pump-1",
      password: Buffer.from("secret"),
      ...change,
    },
    version,
  );
}

/** All packets of these bytes after a CONNECT of this version; a fault is the last one. */
export function readAll(bytes: Buffer, version: ProtocolVersion = 4): (IncomingPacket | PacketFault)[] {
  return readPieces([connectBytes(version), bytes]).slice(1);
}

/** All packets of bytes that come in pieces. */
export function readPieces(pieces: readonly Buffer[]): (IncomingPacket | PacketFault)[] {
  const stream = new PacketStream();
  const found: (IncomingPacket | PacketFault)[] = [];
  for (const piece of pieces) {
    stream.push(piece);
    for (let next = stream.next(); next !== null; next = stream.next()) {
      found.push(next);
      if (next.type === "fault") return found;
    }
  }
  return found;
}
