import type { PacketProperties } from "./properties.ts";

/** 3: MQTT 3.1 (`MQIsdp`), 4: 3.1.1, 5: 5. */
export type ProtocolVersion = 3 | 4 | 5;

/** Quality of service. */
export type Qos = 0 | 1 | 2;

/** A message that is published when the connection ends without DISCONNECT. */
export interface WillMessage {
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties: PacketProperties;
}

/** The first packet of a connection. */
export interface ConnectPacket {
  readonly type: "connect";
  readonly version: ProtocolVersion;
  readonly clean: boolean;
  /** Seconds; 0: none. */
  readonly keepAlive: number;
  readonly clientId: string;
  readonly userName: string | null;
  readonly password: Buffer | null;
  readonly will: WillMessage | null;
  readonly properties: PacketProperties;
}

/** The answer to a CONNECT. */
interface ConnackPacket {
  readonly type: "connack";
  readonly sessionPresent: boolean;
  readonly reasonCode: number;
  readonly properties: PacketProperties;
}

/** A message, in either direction. */
export interface PublishPacket {
  readonly type: "publish";
  /** May be empty where a topic alias names it. */
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly dup: boolean;
  /** 0 at QoS 0. */
  readonly packetId: number;
  readonly properties: PacketProperties;
}

/** A step of QoS 1 or 2 after the PUBLISH. */
export interface AcknowledgementPacket {
  readonly type: "puback" | "pubrec" | "pubrel" | "pubcomp";
  readonly packetId: number;
  /** 0 in MQTT 3. */
  readonly reasonCode: number;
  readonly properties: PacketProperties;
}

/** A topic filter with its options. */
export interface FilterSubscription {
  readonly filter: string;
  readonly qos: Qos;
  /** Not what this client publishes itself. */
  readonly noLocal: boolean;
  /** Messages keep their retain flag. */
  readonly retainAsPublished: boolean;
  /** Retained messages are sent: 0 always, 1 if the subscription is new, 2 never. */
  readonly retainHandling: 0 | 1 | 2;
}

/** Asks for subscriptions. */
export interface SubscribePacket {
  readonly type: "subscribe";
  readonly packetId: number;
  readonly subscriptions: readonly FilterSubscription[];
  readonly properties: PacketProperties;
}

/** Ends subscriptions. */
interface UnsubscribePacket {
  readonly type: "unsubscribe";
  readonly packetId: number;
  readonly filters: readonly string[];
  readonly properties: PacketProperties;
}

/** The answers to a SUBSCRIBE and an UNSUBSCRIBE, a code for each filter. */
interface SubscriptionAnswer {
  readonly type: "suback" | "unsuback";
  readonly packetId: number;
  readonly reasonCodes: readonly number[];
  readonly properties: PacketProperties;
}

/** Ends a connection. */
interface DisconnectPacket {
  readonly type: "disconnect";
  readonly reasonCode: number;
  readonly properties: PacketProperties;
}

/** Asks whether the other side is there, and its answer; steps of an extended login. */
interface BarePacket<Type> {
  readonly type: Type;
}

/** Packets of a client. */
export type IncomingPacket =
  | ConnectPacket
  | PublishPacket
  | AcknowledgementPacket
  | SubscribePacket
  | UnsubscribePacket
  | DisconnectPacket
  | BarePacket<"pingreq">
  | BarePacket<"auth">;

/** Packets of a server. */
export type OutgoingPacket =
  | ConnackPacket
  | PublishPacket
  | AcknowledgementPacket
  | SubscriptionAnswer
  | DisconnectPacket
  | BarePacket<"pingresp">;
