import { allowedTopics, mqttBounds } from "@devmesh/contracts/mqtt";
import { publishBytes } from "../packets/encode-packet.ts";
import type {
  AcknowledgementPacket,
  ConnectPacket,
  FilterSubscription,
  IncomingPacket,
  ProtocolVersion,
  PublishPacket,
  SubscribePacket,
  WillMessage,
} from "../packets/packet.ts";
import { maxPacketBytes, type PacketFault } from "../packets/packet-stream.ts";
import { noProperties, type PacketProperties } from "../packets/properties.ts";
import { firstFailure, type ReasonCode, reasonCodes } from "../packets/reason-code.ts";
import type { DeviceTopics } from "../topics/device-topics.ts";
import { isShared, isValidFilter } from "../topics/topic-filter.ts";
import type { Effect, EndReason, GrantedSubscription, Publication, SessionRefusal } from "./effect.ts";
import type { MqttSession } from "./mqtt-session.ts";
import type { NextInWindow, OutgoingMessage } from "./outgoing-window.ts";
import { IncomingAliases, OutgoingAliases, topicAliasMaximum } from "./topic-aliases.ts";

/** How long a connection may take to send its CONNECT, in milliseconds. */
const maxConnectMs = 5_000;

/** Messages at QoS 1 and 2 of a connection that are not stored; then its socket is not read. MQTT 5 forbids more. */
const receiveMaximum = 1_000;

/** The longest keep-alive that MQTT 5 clients get, also those that ask for none; in seconds. */
const maxKeepAliveSeconds = 3_600;

/** A connection is dead after this many times its keep-alive without a packet. */
const keepAliveFactor = 1.5;

/** A session expiry of MQTT 5 that never ends. */
const neverExpires = 0xffff_ffff;

/** Options of a {@link MqttConnection}. */
export interface MqttConnectionOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Longest time for which a session is kept without a connection, in milliseconds. */
  readonly maxSessionExpiryMs: number;
}

/** A login that succeeded. */
export interface Admission {
  readonly deviceId: string;
  readonly topics: DeviceTopics;
  /** That of the client id, or a new one; its client id is the assigned one where the client sent none. */
  readonly session: MqttSession;
  /** Whether the session was there before. */
  readonly isPresent: boolean;
}

/** A message for a device. */
export interface MessageForDevice extends OutgoingMessage {
  /** The client id that published it, if a device did. */
  readonly publisher: string | null;
}

/** Why a login was refused, in codes of MQTT 5. */
export type LoginRefusalCode =
  | typeof reasonCodes.badUserNameOrPassword
  | typeof reasonCodes.clientIdNotValid
  | typeof reasonCodes.notAuthorized
  | typeof reasonCodes.serverUnavailable
  | typeof reasonCodes.serverBusy
  | typeof reasonCodes.quotaExceeded;

/** How the server ends a connection, and what a client of MQTT 5 gets as reason. */
const endCodes = {
  taken_over: reasonCodes.sessionTakenOver,
  revoked: reasonCodes.notAuthorized,
  server_stop: reasonCodes.serverShuttingDown,
  slow: reasonCodes.quotaExceeded,
} as const satisfies Partial<Record<EndReason, ReasonCode>>;

/**
 * One connection of a client as a state machine: packets and answers go in, effects come out, to be carried out in
 * order. It knows neither sockets nor time. Its memory is bounded, and no input makes it throw.
 */
export class MqttConnection {
  readonly #now: () => number;
  readonly #maxSessionExpiryMs: number;
  readonly #incomingAliases = new IncomingAliases();
  #outgoingAliases = new OutgoingAliases(0);
  #state: "awaiting_connect" | "deciding" | "connected" | "closed" = "awaiting_connect";
  #connect: ConnectPacket | null = null;
  #admission: Admission | null = null;
  #will: WillMessage | null = null;
  #keepAliveMs = 0;
  #lastPacketMs: number;
  /** Messages of this connection that are not stored. */
  #unstored = 0;
  /** Messages that count against the receive maximum of MQTT 5: until PUBACK or PUBCOMP. */
  #unacknowledged = 0;
  #effects: Effect[] = [];

  constructor({ now, maxSessionExpiryMs }: MqttConnectionOptions) {
    this.#now = now;
    this.#maxSessionExpiryMs = maxSessionExpiryMs;
    this.#lastPacketMs = now();
  }

  get state(): "awaiting_connect" | "deciding" | "connected" | "closed" {
    return this.#state;
  }

  get version(): ProtocolVersion {
    return this.#connect?.version ?? 4;
  }

  /** The largest packet that the client takes, in bytes. */
  get maximumPacketSize(): number {
    return this.#connect?.properties.maximumPacketSize ?? Number.POSITIVE_INFINITY;
  }

  get session(): MqttSession | null {
    return this.#admission?.session ?? null;
  }

  /** Whether further packets may be handled; otherwise they have to wait where they are. */
  get isReading(): boolean {
    if (this.#state === "connected") return this.#unstored < receiveMaximum;
    return this.#state === "awaiting_connect";
  }

  /** When {@link tick} has something to do at the earliest, if no packet comes; infinite for never. */
  get dueAtMs(): number {
    if (this.#state === "awaiting_connect") return this.#lastPacketMs + maxConnectMs;
    if (this.#state !== "connected" || this.#keepAliveMs === 0) return Number.POSITIVE_INFINITY;
    return this.#lastPacketMs + this.#keepAliveMs * keepAliveFactor;
  }

  /** A packet, or what is wrong with the bytes that came. */
  handle(packet: IncomingPacket | PacketFault): readonly Effect[] {
    if (this.#state === "closed") return [];
    if (packet.type === "fault") {
      this.#end(
        packet.code,
        packet.code === reasonCodes.packetTooLarge ? "too_large" : "protocol",
        packet.detail,
      );
      return this.#take();
    }
    this.#lastPacketMs = this.#now();
    if (this.#state === "awaiting_connect") {
      if (packet.type === "connect") this.#login(packet);
      else this.#breach("the first packet is no CONNECT");
    } else if (this.#state === "deciding") this.#breach("a packet was handled during the login");
    else this.#handleConnected(packet);
    return this.#take();
  }

  /** The login succeeded. */
  admit(admission: Admission): readonly Effect[] {
    const connect = this.#connect;
    if (this.#state !== "deciding" || connect === null) return [];
    const { session, topics, deviceId } = admission;
    const { will, properties } = connect;
    if (will !== null && this.#isRefusedWill(will, topics)) {
      this.#report({ name: "publication_refused", reason: "topic", topic: will.topic });
      // A client of MQTT 3 would never come back from a refusal that it cannot read.
      if (connect.version === 5) {
        this.#refuse(reasonCodes.notAuthorized, allowedTopics(deviceId, "publication_refused"));
        return this.#take();
      }
    } else this.#will = will;
    this.#admission = admission;
    this.#state = "connected";
    this.#outgoingAliases = new OutgoingAliases(properties.topicAliasMaximum ?? 0);
    const wantedExpiryMs = this.#wantedExpiryMs(connect);
    session.expiryMs = Math.min(wantedExpiryMs, this.#maxSessionExpiryMs);
    const isKeepAliveOurs =
      connect.version === 5 && (connect.keepAlive === 0 || connect.keepAlive > maxKeepAliveSeconds);
    this.#keepAliveMs = (isKeepAliveOurs ? maxKeepAliveSeconds : connect.keepAlive) * 1_000;
    this.#lastPacketMs = this.#now();
    this.#send({
      type: "connack",
      sessionPresent: admission.isPresent,
      reasonCode: reasonCodes.success,
      properties: {
        ...(session.expiryMs < wantedExpiryMs
          ? { sessionExpiryInterval: Math.floor(session.expiryMs / 1_000) }
          : {}),
        receiveMaximum,
        maximumPacketSize: maxPacketBytes,
        ...(connect.clientId === "" ? { assignedClientIdentifier: session.clientId } : {}),
        topicAliasMaximum,
        sharedSubscriptionAvailable: 0,
        ...(isKeepAliveOurs ? { serverKeepAlive: maxKeepAliveSeconds } : {}),
      },
    });
    session.outgoing.open(properties.receiveMaximum ?? 0xffff);
    this.#transmit(session);
    return this.#take();
  }

  /** The login failed. */
  refuse(code: LoginRefusalCode, reason: string | null = null): readonly Effect[] {
    if (this.#state !== "deciding") return [];
    this.#refuse(code, reason);
    return this.#take();
  }

  /**
   * A message at QoS 1 or 2 is stored: it is acknowledged. At QoS 1 call it on the connection that published it; at QoS
   * 2 on the one that its session has now, and where it has none on the one that published it.
   */
  stored({ qos, packetId }: Publication): readonly Effect[] {
    const session = this.session;
    if (session === null || packetId === 0) return [];
    if (qos === 2 && !session.incoming.stored(packetId)) return [];
    if (this.#state !== "connected") return [];
    this.#unstored = Math.max(0, this.#unstored - 1);
    if (qos === 2) this.#saveIfKept(session);
    this.#acknowledge(qos === 1 ? "puback" : "pubrec", packetId);
    return this.#take();
  }

  /** A message at QoS 1 or 2 was not taken. Only MQTT 5 can say so: in MQTT 3 it remains without an answer. */
  reject({ qos, packetId }: Publication, code: ReasonCode, reason: string): readonly Effect[] {
    const session = this.session;
    if (session === null || packetId === 0) return [];
    if (qos === 2) session.incoming.reject(packetId);
    if (this.#state !== "connected" || this.version < 5) return [];
    this.#unstored = Math.max(0, this.#unstored - 1);
    this.#acknowledge(qos === 1 ? "puback" : "pubrec", packetId, code, reason);
    return this.#take();
  }

  /** A message for the device: `isMatched` says whether a subscription selects it. */
  deliver(message: MessageForDevice): { readonly isMatched: boolean; readonly effects: readonly Effect[] } {
    const session = this.session;
    if (this.#state !== "connected" || session === null) return { isMatched: false, effects: [] };
    const match = session.subscriptions.match(message.topic, message.publisher === session.clientId);
    if (match === null) return { isMatched: false, effects: [] };
    this.#forward(session, {
      ...message,
      qos: lower(message.qos, match.qos),
      retain: message.retain && match.retainAsPublished,
      properties: withIdentifiers(message.properties, match.identifiers),
    });
    return { isMatched: true, effects: this.#take() };
  }

  /** A retained message, because of a new subscription of this filter. */
  deliverRetained(filter: string, message: OutgoingMessage): readonly Effect[] {
    const session = this.session;
    const subscription = session?.subscriptions.find(filter) ?? null;
    if (this.#state !== "connected" || session === null || subscription === null) return [];
    const { identifier } = subscription;
    this.#forward(session, {
      ...message,
      qos: lower(message.qos, subscription.qos),
      retain: true,
      properties: withIdentifiers(message.properties, identifier === null ? [] : [identifier]),
    });
    return this.#take();
  }

  /** Time has passed: ends a connection that sent no CONNECT, or nothing for 1.5 times its keep-alive. */
  tick(): readonly Effect[] {
    if (this.#now() < this.dueAtMs) return [];
    if (this.#state === "awaiting_connect") this.#close("no_connect", null);
    else this.#end(reasonCodes.keepAliveTimeout, "keep_alive", null);
    return this.#take();
  }

  /** The server ends the connection. */
  end(reason: keyof typeof endCodes, detail: string | null = null): readonly Effect[] {
    if (this.#state === "closed") return [];
    this.#end(endCodes[reason], reason, detail);
    return this.#take();
  }

  /** The socket was closed, with the network's error or without one. */
  lost(detail: string | null): readonly Effect[] {
    if (this.#state === "closed") return [];
    this.#close(detail === null ? "client_closed" : "network", detail);
    return this.#take();
  }

  #login(connect: ConnectPacket): void {
    this.#connect = connect;
    this.#state = "deciding";
    if (connect.properties.authenticationMethod !== undefined)
      this.#refuse(reasonCodes.badAuthenticationMethod, "no authentication method is known");
    else if (connect.clientId === "" && (connect.version === 3 || (connect.version === 4 && !connect.clean)))
      this.#refuse(reasonCodes.clientIdNotValid, null);
    else this.#effects.push({ do: "login", connect });
  }

  #handleConnected(packet: IncomingPacket): void {
    const session = this.session;
    if (session === null) return;
    switch (packet.type) {
      case "publish":
        this.#publish(session, packet);
        break;
      case "puback":
        if (session.outgoing.acknowledge(packet.packetId, "puback")) this.#transmit(session);
        break;
      case "pubrec":
        this.#pubrec(session, packet);
        break;
      case "pubrel":
        this.#pubrel(session, packet);
        break;
      case "pubcomp":
        if (session.outgoing.acknowledge(packet.packetId, "pubcomp")) this.#transmit(session);
        break;
      case "subscribe":
        this.#subscribe(session, packet);
        break;
      case "unsubscribe": {
        const removed = packet.filters.map((filter) => session.subscriptions.remove(filter));
        if (removed.includes(true)) this.#saveIfKept(session);
        const codes = removed.map((was) => (was ? reasonCodes.success : reasonCodes.noSubscriptionExisted));
        this.#send({
          type: "unsuback",
          packetId: packet.packetId,
          reasonCodes: codes,
          properties: noProperties,
        });
        break;
      }
      case "pingreq":
        this.#send({ type: "pingresp" });
        break;
      case "disconnect":
        this.#disconnect(session, packet);
        break;
      case "connect":
        this.#breach("a second CONNECT");
        break;
      case "auth":
        this.#breach("AUTH without an authentication method");
        break;
    }
  }

  #publish(session: MqttSession, packet: PublishPacket): void {
    const { qos, packetId, payload, retain, dup, properties } = packet;
    const topic = this.#incomingAliases.resolve(packet.topic, properties.topicAlias);
    if (topic === null) {
      this.#end(reasonCodes.topicAliasInvalid, "protocol", `topic alias ${properties.topicAlias}`);
      return;
    }
    if (qos > 0) {
      if (this.version === 5 && this.#unacknowledged >= receiveMaximum) {
        this.#end(
          reasonCodes.receiveMaximumExceeded,
          "protocol",
          `more than ${receiveMaximum} messages are not acknowledged`,
        );
        return;
      }
      this.#unacknowledged++;
    }
    const refusal = this.#refusalOf(topic);
    if (refusal !== null) {
      this.#refusePublication(packet, topic, refusal);
      return;
    }
    const destination = this.#admission?.topics.destinationOf(topic) ?? null;
    if (destination === null) {
      this.#refusePublication(packet, topic, "topic");
      return;
    }
    if (payload.length > destination.maxBytes) {
      this.#report({ name: "publication_refused", reason: "too_large", topic });
      const detail = `a payload has ${payload.length} bytes, of at most ${destination.maxBytes}`;
      this.#end(reasonCodes.packetTooLarge, "too_large", detail);
      return;
    }
    if (qos === 2) {
      const progress = session.incoming.begin(packetId);
      if (progress === "held") {
        this.#acknowledge("pubrec", packetId);
        return;
      }
      // Its PUBREC comes once it is stored.
      if (progress === "storing") return;
    }
    if (qos > 0) this.#unstored++;
    const passedOn = passedOnProperties(properties);
    this.#effects.push({
      do: "publish",
      publication: { topic, payload, qos, retain, dup, packetId, properties: passedOn, destination },
    });
  }

  #refusalOf(topic: string): "topic_too_long" | null {
    const { recordTopicBytes } = mqttBounds;
    return topic.length > recordTopicBytes / 4 && Buffer.byteLength(topic) > recordTopicBytes
      ? "topic_too_long"
      : null;
  }

  /** MQTT 3 has no other answer than an acknowledgement, without which its libraries send again for ever. */
  #refusePublication(
    { qos, packetId }: PublishPacket,
    topic: string,
    reason: "topic" | "topic_too_long",
  ): void {
    this.#report({ name: "publication_refused", reason, topic });
    if (qos === 0) return;
    const type = qos === 1 ? "puback" : "pubrec";
    if (this.version < 5) {
      this.#acknowledge(type, packetId);
      return;
    }
    const code = reason === "topic" ? reasonCodes.notAuthorized : reasonCodes.topicNameInvalid;
    const sentence =
      reason === "topic"
        ? allowedTopics(this.#admission?.deviceId ?? "", "publication_refused")
        : `a topic may have ${mqttBounds.recordTopicBytes} bytes`;
    this.#acknowledge(type, packetId, code, sentence);
  }

  /** Sends a step of QoS 1 or 2, and takes its message off the receive maximum where that was the last one. */
  #acknowledge(
    type: AcknowledgementPacket["type"],
    packetId: number,
    reasonCode: ReasonCode = reasonCodes.success,
    reason: string | null = null,
  ): void {
    if (type === "puback" || type === "pubcomp" || reasonCode >= firstFailure)
      this.#unacknowledged = Math.max(0, this.#unacknowledged - 1);
    this.#send({ type, packetId, reasonCode, properties: this.#because(reason) });
  }

  #pubrec(session: MqttSession, { packetId, reasonCode }: AcknowledgementPacket): void {
    const isKnown = session.outgoing.receive(packetId);
    if (reasonCode >= firstFailure) {
      if (isKnown) session.outgoing.drop(packetId);
      this.#transmit(session);
      return;
    }
    // In MQTT 3 an unknown one is released, too: otherwise its sender repeats it.
    const code = isKnown ? reasonCodes.success : reasonCodes.packetIdNotFound;
    this.#send({ type: "pubrel", packetId, reasonCode: code, properties: noProperties });
    // A release takes less room than its message.
    this.#transmit(session);
  }

  #pubrel(session: MqttSession, { packetId }: AcknowledgementPacket): void {
    const isKnown = session.incoming.release(packetId);
    if (isKnown) this.#saveIfKept(session);
    this.#acknowledge("pubcomp", packetId, isKnown ? reasonCodes.success : reasonCodes.packetIdNotFound);
  }

  #subscribe(session: MqttSession, { packetId, subscriptions, properties }: SubscribePacket): void {
    const identifier = properties.subscriptionIdentifiers?.[0] ?? null;
    if (subscriptions.some(({ filter, noLocal }) => noLocal && isShared(filter))) {
      this.#breach("a shared subscription is marked as no local");
      return;
    }
    const granted: GrantedSubscription[] = [];
    const codes = subscriptions.map((subscription) => {
      const refusal = this.#subscriptionRefusal(subscription);
      if (refusal !== null) return refusal;
      const added = session.subscriptions.add({ ...subscription, identifier });
      if (added === "full") {
        this.#report({ name: "subscription_limit", reason: "subscriptions", topic: subscription.filter });
        return reasonCodes.quotaExceeded;
      }
      granted.push({ ...subscription, isNew: added === "new" });
      return subscription.qos;
    });
    if (granted.length > 0) this.#saveIfKept(session);
    const refused = codes.find((code) => code >= firstFailure);
    const deviceId = this.#admission?.deviceId ?? "";
    const reason = refused === undefined ? null : allowedTopics(deviceId, "subscription_refused");
    this.#send({ type: "suback", packetId, reasonCodes: codes, properties: this.#because(reason) });
    const retained = granted.filter(
      ({ retainHandling, isNew }) => retainHandling === 0 || (retainHandling === 1 && isNew),
    );
    if (retained.length > 0) this.#effects.push({ do: "send_retained", subscriptions: retained });
  }

  #subscriptionRefusal({ filter }: FilterSubscription): ReasonCode | null {
    const topics = this.#admission?.topics;
    const refuse = (reason: SessionRefusal["reason"], code: ReasonCode) => {
      if (topics?.isRefusedQuietly(filter) !== true)
        this.#report({ name: "subscription_refused", reason, topic: filter });
      return code;
    };
    if (isShared(filter)) return refuse("shared", reasonCodes.sharedSubscriptionsNotSupported);
    if (!isValidFilter(filter)) return refuse("filter", reasonCodes.topicFilterInvalid);
    if (topics?.maySubscribe(filter) !== true) return refuse("topic", reasonCodes.notAuthorized);
    return null;
  }

  #disconnect(session: MqttSession, packet: Extract<IncomingPacket, { type: "disconnect" }>): void {
    const { sessionExpiryInterval } = packet.properties;
    if (sessionExpiryInterval !== undefined) {
      if (sessionExpiryInterval > 0 && session.expiryMs === 0) {
        this.#breach("a DISCONNECT keeps a session that its CONNECT did not keep");
        return;
      }
      session.expiryMs = Math.min(expiryMsOf(sessionExpiryInterval), this.#maxSessionExpiryMs);
    }
    if (packet.reasonCode !== reasonCodes.disconnectWithWill) this.#will = null;
    this.#close("client_closed", null);
  }

  #forward(session: MqttSession, message: OutgoingMessage): void {
    if (message.qos > 0) {
      if (!session.outgoing.add(message)) {
        this.#end(endCodes.slow, "slow", "too much waits for its acknowledgements");
        return;
      }
      this.#transmit(session);
      return;
    }
    const packet = this.#packetOf(message, 0, false);
    if (packet !== null) this.#sendPublish(packet, message.topic);
  }

  /** Sends what the window allows. */
  #transmit(session: MqttSession): void {
    for (let next = session.outgoing.next(); next !== null; next = session.outgoing.next()) {
      if (this.#transmitOne(next)) continue;
      session.outgoing.drop(next.packetId);
    }
  }

  /** False where the message cannot be sent. */
  #transmitOne(next: NextInWindow): boolean {
    if (next.send === "pubrel") {
      const { packetId } = next;
      this.#send({ type: "pubrel", packetId, reasonCode: reasonCodes.success, properties: noProperties });
      return true;
    }
    const packet = this.#packetOf(next.message, next.packetId, next.dup);
    if (packet === null) return false;
    this.#sendPublish(packet, next.message.topic);
    return true;
  }

  /** Null where the message has expired or the client does not take one as large. */
  #packetOf(message: OutgoingMessage, packetId: number, dup: boolean): PublishPacket | null {
    const { topic, payload, qos, retain, expiresAtMs } = message;
    const leftMs = expiresAtMs === null ? null : expiresAtMs - this.#now();
    // One that was sent must be sent again.
    if (leftMs !== null && leftMs <= 0 && !dup) return this.#dropped("expired");
    const properties =
      leftMs === null || this.version < 5
        ? message.properties
        : { ...message.properties, messageExpiryInterval: Math.max(0, Math.ceil(leftMs / 1_000)) };
    const packet: PublishPacket = { type: "publish", topic, payload, qos, retain, dup, packetId, properties };
    if (this.version === 5 && publishBytes(packet, 5) + aliasBytes > this.maximumPacketSize)
      return this.#dropped("too_large");
    return packet;
  }

  #dropped(why: "expired" | "too_large"): null {
    this.#effects.push({ do: "count_dropped", why });
    return null;
  }

  #sendPublish(packet: PublishPacket, topic: string): void {
    const alias = this.#outgoingAliases.apply(topic);
    if (alias.topicAlias === undefined) {
      this.#send(packet);
      return;
    }
    const properties = { ...packet.properties, topicAlias: alias.topicAlias };
    this.#send({ ...packet, topic: alias.topic, properties });
  }

  #isRefusedWill({ topic, payload }: WillMessage, topics: DeviceTopics): boolean {
    if (this.#refusalOf(topic) !== null) return true;
    const destination = topics.destinationOf(topic);
    return destination === null || payload.length > destination.maxBytes;
  }

  #wantedExpiryMs({ version, clean, properties }: ConnectPacket): number {
    if (version === 5) return expiryMsOf(properties.sessionExpiryInterval ?? 0);
    return clean ? 0 : this.#maxSessionExpiryMs;
  }

  #refuse(code: ReasonCode, reason: string | null): void {
    this.#send({
      type: "connack",
      sessionPresent: false,
      reasonCode: code,
      properties: this.#because(reason),
    });
    this.#close("login_refused", reason);
  }

  /** Ends a connection whose client broke the protocol. */
  #breach(detail: string): void {
    this.#end(reasonCodes.protocolError, "protocol", detail);
  }

  /** Ends the connection with its reason, where the client's version has a packet for it. */
  #end(code: ReasonCode, reason: EndReason, detail: string | null): void {
    const properties = this.#because(detail);
    if (this.#state === "connected" && this.version === 5)
      this.#send({ type: "disconnect", reasonCode: code, properties });
    const isLogin = this.#state === "deciding" || code === reasonCodes.unsupportedProtocolVersion;
    if (isLogin && this.#state !== "connected")
      this.#send({ type: "connack", sessionPresent: false, reasonCode: code, properties });
    this.#close(reason, detail);
  }

  #close(reason: EndReason, detail: string | null): void {
    const wasConnected = this.#state === "connected";
    this.#state = "closed";
    const session = this.session;
    if (wasConnected && session !== null && this.#will !== null) {
      const delayMs = (this.#will.properties.willDelayInterval ?? 0) * 1_000;
      const publication = this.#willPublication(this.#will);
      if (publication !== null)
        this.#effects.push({ do: "will", publication, delayMs: Math.min(delayMs, session.expiryMs) });
    }
    this.#effects.push({ do: "close", reason, detail });
  }

  #willPublication({ topic, payload, qos, retain, properties }: WillMessage): Publication | null {
    const destination = this.#admission?.topics.destinationOf(topic) ?? null;
    if (destination === null) return null;
    const passedOn = passedOnProperties(properties);
    return { topic, payload, qos, retain, dup: false, packetId: 0, properties: passedOn, destination };
  }

  #saveIfKept(session: MqttSession): void {
    if (session.expiryMs > 0) this.#effects.push({ do: "save" });
  }

  #report(refusal: SessionRefusal): void {
    this.#effects.push({ do: "report", refusal });
  }

  /** A reason string, for clients that did not ask to be spared. */
  #because(reason: string | null): PacketProperties {
    if (reason === null || this.#connect?.properties.requestProblemInformation === 0) return noProperties;
    return { reasonString: reason };
  }

  #send(packet: Extract<Effect, { do: "send" }>["packet"]): void {
    this.#effects.push({ do: "send", packet });
  }

  #take(): readonly Effect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }
}

/** Bytes that a topic alias adds to a packet. */
const aliasBytes = 3;

function lower<T extends number>(one: T, other: T): T {
  return one < other ? one : other;
}

function expiryMsOf(seconds: number): number {
  return seconds === neverExpires ? Number.POSITIVE_INFINITY : seconds * 1_000;
}

function withIdentifiers(properties: PacketProperties, identifiers: readonly number[]): PacketProperties {
  return identifiers.length === 0 ? properties : { ...properties, subscriptionIdentifiers: identifiers };
}

/** The properties of a message that its receivers get. */
function passedOnProperties(properties: PacketProperties): PacketProperties {
  if (properties === noProperties) return noProperties;
  const {
    payloadFormatIndicator,
    messageExpiryInterval,
    contentType,
    responseTopic,
    correlationData,
    userProperties,
  } = properties;
  return {
    ...(payloadFormatIndicator === undefined ? {} : { payloadFormatIndicator }),
    ...(messageExpiryInterval === undefined ? {} : { messageExpiryInterval }),
    ...(contentType === undefined ? {} : { contentType }),
    ...(responseTopic === undefined ? {} : { responseTopic }),
    ...(correlationData === undefined ? {} : { correlationData }),
    ...(userProperties === undefined ? {} : { userProperties }),
  };
}
