import type {
  AcknowledgementPacket,
  ConnectPacket,
  FilterSubscription,
  IncomingPacket,
  ProtocolVersion,
  Qos,
  WillMessage,
} from "./packet.ts";
import { malformed, PacketError, PacketReader } from "./packet-reader.ts";
import { noProperties, type PacketProperties, type PropertyHolder, readProperties } from "./properties.ts";
import { reasonCodes } from "./reason-code.ts";

/** Number of a packet type: the upper half of its first byte. */
export const packetTypes = {
  connect: 1,
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
  auth: 15,
} as const;

const versionsByName: Readonly<Record<string, readonly number[]>> = { MQIsdp: [3], MQTT: [4, 5] };

/** Most topic filters of one SUBSCRIBE or UNSUBSCRIBE. */
const maxFilters = 1_000;

/**
 * Reads a packet: `first` is its first byte, and `bytes` hold from `start` to `end` what follows its length. Throws a
 * {@link PacketError}, also for a packet that only a server sends.
 */
export function decodePacket(
  first: number,
  bytes: Buffer,
  start: number,
  end: number,
  version: ProtocolVersion,
): IncomingPacket {
  const type = first >> 4;
  const flags = first & 0x0f;
  const reader = new PacketReader(bytes, start, end);
  if (type === packetTypes.publish) return publish(reader, flags, version);
  const expected =
    type === packetTypes.pubrel || type === packetTypes.subscribe || type === packetTypes.unsubscribe ? 2 : 0;
  if (flags !== expected) throw malformed(`a packet of type ${type} has the flags ${flags}`);
  const packet = others(type, reader, version);
  reader.finish();
  return packet;
}

function others(type: number, reader: PacketReader, version: ProtocolVersion): IncomingPacket {
  switch (type) {
    case packetTypes.connect:
      return connect(reader);
    case packetTypes.puback:
      return acknowledgement("puback", reader, version);
    case packetTypes.pubrec:
      return acknowledgement("pubrec", reader, version);
    case packetTypes.pubrel:
      return acknowledgement("pubrel", reader, version);
    case packetTypes.pubcomp:
      return acknowledgement("pubcomp", reader, version);
    case packetTypes.subscribe:
      return {
        type: "subscribe",
        packetId: reader.packetId(),
        properties: propertiesOf(reader, "subscribe", version),
        subscriptions: subscriptions(reader, version),
      };
    case packetTypes.unsubscribe:
      return {
        type: "unsubscribe",
        packetId: reader.packetId(),
        properties: propertiesOf(reader, "unsubscribe", version),
        filters: filters(reader),
      };
    case packetTypes.pingreq:
      return { type: "pingreq" };
    case packetTypes.disconnect: {
      const reasonCode = version === 5 && reader.left > 0 ? reader.byte() : 0;
      const properties = reader.left > 0 ? propertiesOf(reader, "disconnect", version) : noProperties;
      return { type: "disconnect", reasonCode, properties };
    }
    case packetTypes.auth:
      if (version !== 5) throw malformed("AUTH is of MQTT 5 alone");
      reader.rest();
      return { type: "auth" };
    default:
      throw malformed(`a client sends no packet of type ${type}`);
  }
}

function propertiesOf(
  reader: PacketReader,
  holder: PropertyHolder,
  version: ProtocolVersion,
): PacketProperties {
  return version === 5 ? readProperties(reader, holder) : noProperties;
}

/** Bits of the flags of a CONNECT. */
const connectFlags = {
  reserved: 1,
  clean: 2,
  will: 4,
  willQos: 0x18,
  willRetain: 0x20,
  password: 0x40,
  userName: 0x80,
};

function connect(reader: PacketReader): ConnectPacket {
  const name = reader.string();
  const level = reader.byte();
  const versions = versionsByName[name];
  if (versions === undefined) throw malformed("a CONNECT does not name the protocol MQTT");
  if (!versions.includes(level))
    throw new PacketError(
      reasonCodes.unsupportedProtocolVersion,
      `version ${level} of ${name} is not spoken`,
    );
  const version = level as ProtocolVersion;
  const flags = reader.byte();
  const has = (bit: number) => (flags & bit) !== 0;
  if (has(connectFlags.reserved)) throw malformed("the reserved flag of a CONNECT is set");
  if (!has(connectFlags.will) && has(connectFlags.willQos | connectFlags.willRetain))
    throw malformed("a CONNECT without a will has flags of one");
  if (version < 5 && has(connectFlags.password) && !has(connectFlags.userName))
    throw malformed("a CONNECT has a password and no user name");
  const willQos = qosOf((flags & connectFlags.willQos) >> 3);
  const keepAlive = reader.uint16();
  const properties = propertiesOf(reader, "connect", version);
  const clientId = reader.string();
  let will: WillMessage | null = null;
  if (has(connectFlags.will))
    will = {
      properties: propertiesOf(reader, "will", version),
      topic: topicName(reader.string()),
      payload: reader.binary(),
      qos: willQos,
      retain: has(connectFlags.willRetain),
    };
  const userName = has(connectFlags.userName) ? reader.string() : null;
  const password = has(connectFlags.password) ? reader.binary() : null;
  const clean = has(connectFlags.clean);
  return { type: "connect", version, clean, keepAlive, clientId, userName, password, will, properties };
}

function publish(reader: PacketReader, flags: number, version: ProtocolVersion): IncomingPacket {
  const qos = qosOf((flags >> 1) & 3);
  const dup = (flags & 8) !== 0;
  if (dup && qos === 0) throw malformed("a PUBLISH at QoS 0 is marked as sent again");
  const topic = reader.string();
  const packetId = qos === 0 ? 0 : reader.packetId();
  const properties = propertiesOf(reader, "publish", version);
  if (topic !== "") topicName(topic);
  else if (properties.topicAlias === undefined)
    throw new PacketError(reasonCodes.protocolError, "a PUBLISH has no topic");
  const { responseTopic } = properties;
  if (responseTopic !== undefined) topicName(responseTopic);
  return {
    type: "publish",
    topic,
    payload: reader.rest(),
    qos,
    retain: (flags & 1) !== 0,
    dup,
    packetId,
    properties,
  };
}

function acknowledgement(
  type: AcknowledgementPacket["type"],
  reader: PacketReader,
  version: ProtocolVersion,
): AcknowledgementPacket {
  const packetId = reader.packetId();
  const reasonCode = version === 5 && reader.left > 0 ? reader.byte() : 0;
  const properties = reader.left > 0 ? propertiesOf(reader, type, version) : noProperties;
  return { type, packetId, reasonCode, properties };
}

function subscriptions(reader: PacketReader, version: ProtocolVersion): FilterSubscription[] {
  const found: FilterSubscription[] = [];
  do {
    const filter = reader.string();
    const options = reader.byte();
    if ((options & (version === 5 ? 0xc0 : 0xfc)) !== 0)
      throw malformed("a subscription has reserved options");
    const retainHandling = (options >> 4) & 3;
    if (retainHandling === 3) throw new PacketError(reasonCodes.protocolError, "a retain handling is 3");
    found.push({
      filter,
      qos: qosOf(options & 3),
      noLocal: (options & 4) !== 0,
      retainAsPublished: (options & 8) !== 0,
      retainHandling: retainHandling as 0 | 1 | 2,
    });
    checkCount(found.length);
  } while (reader.left > 0);
  return found;
}

function filters(reader: PacketReader): string[] {
  const found: string[] = [];
  do {
    found.push(reader.string());
    checkCount(found.length);
  } while (reader.left > 0);
  return found;
}

function checkCount(count: number): void {
  if (count > maxFilters)
    throw new PacketError(reasonCodes.packetTooLarge, `a packet has more than ${maxFilters} topic filters`);
}

function qosOf(bits: number): Qos {
  if (bits > 2) throw malformed("a QoS is 3");
  return bits as Qos;
}

/** Throws for the name of a topic that is empty or has a wildcard. */
function topicName(topic: string): string {
  if (topic === "" || topic.includes("+") || topic.includes("#"))
    throw new PacketError(reasonCodes.topicNameInvalid, "the name of a topic is empty or has a wildcard");
  return topic;
}
