import { packetTypes } from "./decode-packet.ts";
import type { AcknowledgementPacket, OutgoingPacket, ProtocolVersion, PublishPacket } from "./packet.ts";
import {
  encodeProperties,
  encodeVariableInteger,
  noProperties,
  type PacketProperties,
} from "./properties.ts";
import { firstFailure, type ReasonCode, returnCodeOf, subscriptionFailure } from "./reason-code.ts";

/** How packets of one connection are written. */
export interface EncodingOptions {
  readonly version: ProtocolVersion;
  /** Most bytes of a packet that the client takes. */
  readonly maximumPacketSize: number;
}

const nothing = Buffer.alloc(0);

/**
 * The bytes of a packet. Reason string and user properties are left out where the packet would be larger than the
 * client takes; a PUBLISH must have been measured by {@link publishBytes}.
 */
export function encodePacket(packet: OutgoingPacket, options: EncodingOptions): Buffer {
  switch (packet.type) {
    case "publish":
      return encodePublish(packet, options.version);
    case "puback":
    case "pubrec":
    case "pubrel":
    case "pubcomp":
      return encodeAcknowledgement(packet, options);
    case "pingresp":
      return Buffer.from([packetTypes.pingresp << 4, 0]);
    case "connack": {
      const { sessionPresent, reasonCode, properties } = packet;
      const code = options.version === 5 ? reasonCode : returnCodeOf(reasonCode as ReasonCode);
      const head = Buffer.from([sessionPresent && reasonCode === 0 ? 1 : 0, code]);
      return withProperties(packetTypes.connack << 4, head, properties, nothing, options);
    }
    case "disconnect":
      return withProperties(
        packetTypes.disconnect << 4,
        Buffer.from([packet.reasonCode]),
        packet.properties,
        nothing,
        options,
      );
    case "suback":
    case "unsuback": {
      const head = Buffer.from([packet.packetId >> 8, packet.packetId & 0xff]);
      return withProperties(
        packetTypes[packet.type] << 4,
        head,
        packet.properties,
        codesOf(packet, options),
        options,
      );
    }
  }
}

function codesOf(
  { type, reasonCodes }: OutgoingPacket & { readonly type: "suback" | "unsuback" },
  { version }: EncodingOptions,
): Buffer {
  if (version === 5) return Buffer.from(reasonCodes);
  if (type === "unsuback") return nothing;
  return Buffer.from(reasonCodes.map((code) => (code >= firstFailure ? subscriptionFailure : code)));
}

/** Four bytes, unless MQTT 5 has more to say. */
function encodeAcknowledgement(packet: AcknowledgementPacket, options: EncodingOptions): Buffer {
  const { type, packetId, reasonCode, properties } = packet;
  const first = (packetTypes[type] << 4) | (type === "pubrel" ? 2 : 0);
  if (options.version < 5 || (reasonCode === 0 && properties === noProperties))
    return Buffer.from([first, 2, packetId >> 8, packetId & 0xff]);
  const head = Buffer.from([packetId >> 8, packetId & 0xff, reasonCode]);
  return withProperties(first, head, properties, nothing, options);
}

function withProperties(
  first: number,
  head: Buffer,
  properties: PacketProperties,
  tail: Buffer,
  { version, maximumPacketSize }: EncodingOptions,
): Buffer {
  if (version < 5) return frame(first, head, nothing, tail);
  const whole = frame(first, head, encodeProperties(properties), tail);
  if (whole.length <= maximumPacketSize) return whole;
  const { reasonString: _, userProperties: __, ...needed } = properties;
  return frame(first, head, encodeProperties(needed), tail);
}

function frame(first: number, ...parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Buffer.from([first]), encodeVariableInteger(length), ...parts]);
}

function encodePublish(packet: PublishPacket, version: ProtocolVersion): Buffer {
  const { topic, payload, qos, retain, dup, packetId } = packet;
  const properties = version === 5 ? encodeProperties(packet.properties) : nothing;
  const topicBytes = Buffer.byteLength(topic);
  const length = 2 + topicBytes + (qos > 0 ? 2 : 0) + properties.length + payload.length;
  const lengthBytes = encodeVariableInteger(length);
  const bytes = Buffer.allocUnsafe(1 + lengthBytes.length + length);
  bytes[0] = (packetTypes.publish << 4) | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0);
  let at = 1 + lengthBytes.copy(bytes, 1);
  at = bytes.writeUInt16BE(topicBytes, at);
  at += bytes.write(topic, at, "utf8");
  if (qos > 0) at = bytes.writeUInt16BE(packetId, at);
  at += properties.copy(bytes, at);
  payload.copy(bytes, at);
  return bytes;
}

/** Bytes of a PUBLISH on the wire. */
export function publishBytes(
  { topic, payload, qos, properties }: PublishPacket,
  version: ProtocolVersion,
): number {
  const length =
    2 +
    Buffer.byteLength(topic) +
    (qos > 0 ? 2 : 0) +
    payload.length +
    (version === 5 ? encodeProperties(properties).length : 0);
  return 1 + encodeVariableInteger(length).length + length;
}
