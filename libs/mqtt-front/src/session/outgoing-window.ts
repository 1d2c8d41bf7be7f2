import type { Qos } from "../packets/packet.ts";
import type { PacketProperties } from "../packets/properties.ts";

/** Messages towards a client that it has not acknowledged; MQTT 5: less if its receive maximum is. */
export const maxInFlight = 100;

/** Bytes of messages in flight beyond which further ones wait. */
export const maxInFlightBytes = 1024 * 1024;

/** Bytes of messages that wait for a place in flight; beyond it the client is too slow. */
export const maxWaitingBytes = 1024 * 1024;

/** Bytes counted for each message in addition to its topic and payload. */
const messageOverheadBytes = 200;

const largestPacketId = 0xffff;

/** A message on its way to a client. */
export interface OutgoingMessage {
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: Qos;
  readonly retain: boolean;
  /** Those that are passed on, with subscription identifiers. */
  readonly properties: PacketProperties;
  /** When it is worth nothing any more, in milliseconds of the connection's clock; null: never. */
  readonly expiresAtMs: number | null;
}

/** The next packet: a message, also a repeated one, or the release of one that the client has received. */
export type NextInWindow =
  | {
      readonly send: "publish";
      readonly packetId: number;
      readonly message: OutgoingMessage;
      readonly dup: boolean;
    }
  | { readonly send: "pubrel"; readonly packetId: number };

/** A message that was sent and is not acknowledged. Once its PUBREC has come, only its id is kept. */
interface InFlightMessage {
  readonly qos: 1 | 2;
  message: OutgoingMessage | null;
  bytes: number;
}

/**
 * Messages at QoS 1 and 2 towards one client, in order. It outlives connections: the next one gets again what was not
 * acknowledged, under the same packet ids.
 */
export class OutgoingWindow {
  readonly #inFlight = new Map<number, InFlightMessage>();
  #inFlightBytes = 0;
  readonly #waiting: OutgoingMessage[] = [];
  #waitingBytes = 0;
  /** Of messages in flight, those to be sent again on this connection. */
  #again: number[] = [];
  /** Messages in flight that this connection has sent. */
  #sent = 0;
  #maximum = 0;
  #lastId = 0;

  /** Messages in flight; what the client may still acknowledge. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Whether a packet id is in use. */
  isInFlight(packetId: number): boolean {
    return this.#inFlight.has(packetId);
  }

  /** Messages that wait for a place in flight. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Bytes of all messages kept. */
  get bytes(): number {
    return this.#inFlightBytes + this.#waitingBytes;
  }

  /** Begins a connection; `receiveMaximum` is the client's. */
  open(receiveMaximum: number): void {
    this.#maximum = Math.min(maxInFlight, receiveMaximum);
    this.#again = [...this.#inFlight.keys()];
    this.#sent = 0;
  }

  /** Adds a message at QoS 1 or 2; false where too many wait. */
  add(message: OutgoingMessage): boolean {
    if (this.#waitingBytes > maxWaitingBytes) return false;
    this.#waiting.push(message);
    this.#waitingBytes += bytesOf(message);
    return true;
  }

  /** The next packet; null while the client has to acknowledge first. */
  next(): NextInWindow | null {
    if (this.#sent >= this.#maximum) return null;
    const again = this.#again.shift();
    if (again !== undefined) {
      this.#sent++;
      const message = this.#inFlight.get(again)?.message ?? null;
      if (message === null) return { send: "pubrel", packetId: again };
      return { send: "publish", packetId: again, message, dup: true };
    }
    const [message] = this.#waiting;
    if (message === undefined) return null;
    if (this.#inFlightBytes > 0 && this.#inFlightBytes + bytesOf(message) > maxInFlightBytes) return null;
    this.#waiting.shift();
    this.#waitingBytes -= bytesOf(message);
    const packetId = this.#freeId();
    const bytes = bytesOf(message);
    this.#inFlight.set(packetId, { qos: message.qos === 2 ? 2 : 1, message, bytes });
    this.#inFlightBytes += bytes;
    this.#sent++;
    return { send: "publish", packetId, message, dup: false };
  }

  /** A PUBACK, or a PUBCOMP. False for a packet id that does not wait for it. */
  acknowledge(packetId: number, by: "puback" | "pubcomp"): boolean {
    const found = this.#inFlight.get(packetId);
    if (found === undefined || !this.#wasSent(packetId)) return false;
    const waitsFor = found.qos === 1 ? "puback" : found.message === null ? "pubcomp" : null;
    if (waitsFor !== by) return false;
    this.drop(packetId);
    return true;
  }

  /** A PUBREC: the message is with the client. False for a packet id that does not wait for it. */
  receive(packetId: number): boolean {
    const found = this.#inFlight.get(packetId);
    if (found === undefined || found.qos !== 2 || !this.#wasSent(packetId)) return false;
    this.#inFlightBytes -= found.bytes;
    found.bytes = 0;
    found.message = null;
    return true;
  }

  /** Ends what was sent under a packet id, such as a message that the client has refused. */
  drop(packetId: number): void {
    const found = this.#inFlight.get(packetId);
    if (found === undefined) return;
    this.#inFlight.delete(packetId);
    this.#inFlightBytes -= found.bytes;
    this.#sent--;
  }

  /** A client cannot acknowledge what this connection has not sent yet. */
  #wasSent(packetId: number): boolean {
    return this.#again.length === 0 || !this.#again.includes(packetId);
  }

  /** At most {@link maxInFlight} are taken. */
  #freeId(): number {
    do this.#lastId = this.#lastId === largestPacketId ? 1 : this.#lastId + 1;
    while (this.#inFlight.has(this.#lastId));
    return this.#lastId;
  }
}

function bytesOf({ topic, payload }: OutgoingMessage): number {
  return topic.length + payload.length + messageOverheadBytes;
}
