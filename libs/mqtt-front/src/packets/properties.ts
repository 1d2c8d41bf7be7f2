import { malformed, PacketError, type PacketReader } from "./packet-reader.ts";
import { reasonCodes } from "./reason-code.ts";

/** Most user properties of one packet. */
const maxUserProperties = 100;

/** Properties of a packet of MQTT 5, by the names of the specification. Earlier versions have none. */
export interface PacketProperties {
  readonly payloadFormatIndicator?: number;
  /** Seconds. */
  readonly messageExpiryInterval?: number;
  readonly contentType?: string;
  readonly responseTopic?: string;
  readonly correlationData?: Buffer;
  readonly subscriptionIdentifiers?: readonly number[];
  /** Seconds; 0xffffffff: for ever. */
  readonly sessionExpiryInterval?: number;
  readonly assignedClientIdentifier?: string;
  /** Seconds. */
  readonly serverKeepAlive?: number;
  readonly authenticationMethod?: string;
  readonly authenticationData?: Buffer;
  readonly requestProblemInformation?: number;
  /** Seconds. */
  readonly willDelayInterval?: number;
  readonly requestResponseInformation?: number;
  readonly reasonString?: string;
  readonly receiveMaximum?: number;
  readonly topicAliasMaximum?: number;
  readonly topicAlias?: number;
  /** Names and values in the order of the packet. */
  readonly userProperties?: readonly (readonly [name: string, value: string])[];
  readonly maximumPacketSize?: number;
  readonly sharedSubscriptionAvailable?: number;
}

/** The properties of packets that have none. */
export const noProperties: PacketProperties = Object.freeze({});

/** Packets with properties, and `will`, which has its part of a CONNECT. */
export type PropertyHolder =
  | "connect"
  | "will"
  | "publish"
  | "puback"
  | "pubrec"
  | "pubrel"
  | "pubcomp"
  | "subscribe"
  | "unsubscribe"
  | "disconnect";

type PropertyKind =
  | "flag"
  | "uint16"
  | "positive16"
  | "uint32"
  | "positive32"
  | "variable"
  | "string"
  | "binary"
  | "pair";

interface PropertyDeclaration {
  readonly id: number;
  readonly name: keyof PacketProperties;
  readonly kind: PropertyKind;
  /** Where a client may send it. */
  readonly from: readonly PropertyHolder[];
}

const messages = ["publish", "will"] as const;
const everywhere: readonly PropertyHolder[] = [
  ...["connect", "will", "publish", "subscribe", "unsubscribe", "disconnect"],
  ...["puback", "pubrec", "pubrel", "pubcomp"],
] as PropertyHolder[];

const declarations: readonly PropertyDeclaration[] = [
  { id: 0x01, name: "payloadFormatIndicator", kind: "flag", from: messages },
  { id: 0x02, name: "messageExpiryInterval", kind: "uint32", from: messages },
  { id: 0x03, name: "contentType", kind: "string", from: messages },
  { id: 0x08, name: "responseTopic", kind: "string", from: messages },
  { id: 0x09, name: "correlationData", kind: "binary", from: messages },
  { id: 0x0b, name: "subscriptionIdentifiers", kind: "variable", from: ["subscribe"] },
  { id: 0x11, name: "sessionExpiryInterval", kind: "uint32", from: ["connect", "disconnect"] },
  { id: 0x12, name: "assignedClientIdentifier", kind: "string", from: [] },
  { id: 0x13, name: "serverKeepAlive", kind: "uint16", from: [] },
  { id: 0x15, name: "authenticationMethod", kind: "string", from: ["connect"] },
  { id: 0x16, name: "authenticationData", kind: "binary", from: ["connect"] },
  { id: 0x17, name: "requestProblemInformation", kind: "flag", from: ["connect"] },
  { id: 0x18, name: "willDelayInterval", kind: "uint32", from: ["will"] },
  { id: 0x19, name: "requestResponseInformation", kind: "flag", from: ["connect"] },
  {
    id: 0x1f,
    name: "reasonString",
    kind: "string",
    from: ["puback", "pubrec", "pubrel", "pubcomp", "disconnect"],
  },
  { id: 0x21, name: "receiveMaximum", kind: "positive16", from: ["connect"] },
  { id: 0x22, name: "topicAliasMaximum", kind: "uint16", from: ["connect"] },
  // An alias of 0 has its reason code: the session checks it.
  { id: 0x23, name: "topicAlias", kind: "uint16", from: ["publish"] },
  { id: 0x26, name: "userProperties", kind: "pair", from: everywhere },
  { id: 0x27, name: "maximumPacketSize", kind: "positive32", from: ["connect"] },
  { id: 0x2a, name: "sharedSubscriptionAvailable", kind: "flag", from: [] },
];

const byId = new Map(declarations.map((declaration) => [declaration.id, declaration]));
const byName = new Map(declarations.map((declaration) => [declaration.name, declaration]));

/** Reads the properties of a packet; throws for one that is unknown, twice there or not of this packet. */
export function readProperties(reader: PacketReader, holder: PropertyHolder): PacketProperties {
  const length = reader.variableInteger();
  if (length === 0) return noProperties;
  const part = reader.part(length);
  const values: Partial<Record<keyof PacketProperties, unknown>> = {};
  const pairs: [string, string][] = [];
  while (part.left > 0) {
    const id = part.variableInteger();
    const declaration = byId.get(id);
    if (declaration === undefined || !declaration.from.includes(holder))
      throw malformed(`property ${id} does not belong into this packet`);
    const { name, kind } = declaration;
    if (kind === "pair") {
      if (pairs.length === maxUserProperties)
        throw new PacketError(reasonCodes.quotaExceeded, `more than ${maxUserProperties} user properties`);
      pairs.push([part.string(), part.string()]);
      continue;
    }
    if (name in values) throw new PacketError(reasonCodes.protocolError, `property ${id} is there twice`);
    values[name] = readValue(part, kind, id);
  }
  if (pairs.length > 0) values.userProperties = pairs;
  return values as PacketProperties;
}

function readValue(reader: PacketReader, kind: Exclude<PropertyKind, "pair">, id: number): unknown {
  const refuse = (value: number) =>
    new PacketError(reasonCodes.protocolError, `property ${id} must not be ${value}`);
  switch (kind) {
    case "flag": {
      const value = reader.byte();
      if (value > 1) throw refuse(value);
      return value;
    }
    case "uint16":
      return reader.uint16();
    case "uint32":
      return reader.uint32();
    case "positive16":
    case "positive32": {
      const value = kind === "positive16" ? reader.uint16() : reader.uint32();
      if (value === 0) throw refuse(value);
      return value;
    }
    case "variable": {
      const value = reader.variableInteger();
      if (value === 0) throw refuse(value);
      return [value];
    }
    case "string":
      return reader.string();
    case "binary":
      return reader.binary();
  }
}

/** The bytes of properties, with their length before them. */
export function encodeProperties(properties: PacketProperties): Buffer {
  if (properties === noProperties) return noBytes;
  const parts: Buffer[] = [];
  for (const name in properties) {
    const declaration = byName.get(name as keyof PacketProperties);
    const value: unknown = properties[name as keyof PacketProperties];
    if (declaration === undefined || value === undefined) continue;
    const { id, kind } = declaration;
    const values = kind === "variable" || kind === "pair" ? (value as readonly unknown[]) : [value];
    for (const one of values) parts.push(Buffer.from([id]), encodeValue(kind, one));
  }
  const body = Buffer.concat(parts);
  return Buffer.concat([encodeVariableInteger(body.length), body]);
}

const noBytes = Buffer.from([0]);

function encodeValue(kind: PropertyKind, value: unknown): Buffer {
  switch (kind) {
    case "flag":
      return Buffer.from([Number(value)]);
    case "uint16":
    case "positive16":
      return encodeUint16(Number(value));
    case "uint32":
    case "positive32": {
      const bytes = Buffer.allocUnsafe(4);
      bytes.writeUInt32BE(Number(value));
      return bytes;
    }
    case "variable":
      return encodeVariableInteger(Number(value));
    case "string":
      return encodeString(String(value));
    case "binary":
      return withLength(value as Buffer);
    case "pair":
      return Buffer.concat((value as readonly string[]).map(encodeString));
  }
}

function encodeString(text: string): Buffer {
  return withLength(Buffer.from(text));
}

function withLength(bytes: Buffer): Buffer {
  return Buffer.concat([encodeUint16(bytes.length), bytes]);
}

/** Two bytes, big-endian. */
function encodeUint16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

/** A number of up to 28 bits, in as few bytes as it takes. */
export function encodeVariableInteger(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  do {
    const low = left & 0x7f;
    left >>>= 7;
    bytes.push(left > 0 ? low | 0x80 : low);
  } while (left > 0);
  return Buffer.from(bytes);
}
