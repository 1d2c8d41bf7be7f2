import type {
  ConnectPacket,
  IncomingPacket,
  OutgoingPacket,
  ProtocolVersion,
  PublishPacket,
} from "../src/packets/packet.ts";
import { noProperties } from "../src/packets/properties.ts";
import type { Effect, Publication } from "../src/session/effect.ts";
import { type MessageForDevice, MqttConnection } from "../src/session/mqtt-connection.ts";
import { MqttSession } from "../src/session/mqtt-session.ts";
import { deviceTopicsOf } from "../src/topics/device-topics.ts";

export const maxSessionExpiryMs = 3_600_000;

/** Moves by hand. */
export interface TestTime {
  nowMs: number;
}

/** A CONNECT of a device, with what a test changes. */
export function connect(change: Partial<ConnectPacket> = {}): ConnectPacket {
  return {
    type: "connect",
    version: 5,
    clean: true,
    keepAlive: 60,
    clientId: "pump-1",
    userName: "pump-1",
    password: Buffer.from("secret"),
    will: null,
    properties: noProperties,
    ...change,
  };
}

/** A PUBLISH of a device. */
export function publish(topic: string, change: Partial<PublishPacket> = {}): PublishPacket {
  const flags = { qos: 0, retain: false, dup: false, packetId: 0 } as const;
  return {
    type: "publish",
    topic,
    payload: Buffer.from("21"),
    ...flags,
    properties: noProperties,
    ...change,
  };
}

/** A message for a device. */
export function message(topic: string, change: Partial<MessageForDevice> = {}): MessageForDevice {
  const rest = {
    qos: 0,
    retain: false,
    properties: noProperties,
    expiresAtMs: null,
    publisher: null,
  } as const;
  return { topic, payload: Buffer.from("x"), ...rest, ...change };
}

/** A connection and what came out of it. */
export interface TestConnection {
  readonly connection: MqttConnection;
  readonly session: MqttSession;
  readonly time: TestTime;
  /** Handles packets; returns all effects. */
  handle(...packets: IncomingPacket[]): Effect[];
}

/** A connection before its CONNECT. */
export function openConnection(time: TestTime = { nowMs: 0 }): MqttConnection {
  return new MqttConnection({ now: () => time.nowMs, maxSessionExpiryMs });
}

/** A connection whose login was admitted, with the effects of that. */
export function connected(
  change: Partial<ConnectPacket> = {},
  session = new MqttSession("pump-1"),
  time: TestTime = { nowMs: 0 },
): TestConnection & { readonly admitted: readonly Effect[] } {
  const connection = openConnection(time);
  connection.handle(connect(change));
  const admitted = connection.admit({
    deviceId: "pump-1",
    topics: deviceTopicsOf("pump-1"),
    session,
    isPresent: false,
  });
  const handle = (...packets: IncomingPacket[]) =>
    packets.flatMap((packet) => [...connection.handle(packet)]);
  return { connection, session, time, handle, admitted };
}

/** A connection with one subscription. */
export function subscribed(
  filter: string,
  qos: 0 | 1 | 2,
  change: Partial<ConnectPacket> = {},
  session?: MqttSession,
): TestConnection {
  const made = connected(change, session);
  made.handle(subscribe(filter, qos));
  return made;
}

/** A SUBSCRIBE of one filter. */
export function subscribe(filter: string, qos: 0 | 1 | 2 = 0, options: object = {}): IncomingPacket {
  const subscription = { filter, qos, noLocal: false, retainAsPublished: false, retainHandling: 0 as const };
  return {
    type: "subscribe",
    packetId: 9,
    subscriptions: [{ ...subscription, ...options }],
    properties: noProperties,
  };
}

/** A step of QoS 1 or 2. */
export function step(
  type: "puback" | "pubrec" | "pubrel" | "pubcomp",
  packetId: number,
  reasonCode = 0,
): IncomingPacket & OutgoingPacket {
  return { type, packetId, reasonCode, properties: noProperties };
}

/** The packets that effects send. */
export function sent(effects: readonly Effect[]): OutgoingPacket[] {
  return effects.flatMap((effect) => (effect.do === "send" ? [effect.packet] : []));
}

/** The messages that effects publish. */
export function published(effects: readonly Effect[]): Publication[] {
  return effects.flatMap((effect) => (effect.do === "publish" ? [effect.publication] : []));
}

/** Names of effects. */
export function kinds(effects: readonly Effect[]): string[] {
  return effects.map((effect) => effect.do);
}

export const versions: readonly ProtocolVersion[] = [3, 4, 5];
