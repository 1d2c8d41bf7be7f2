import type { ConnectPacket, FilterSubscription, OutgoingPacket, PublishPacket } from "../packets/packet.ts";
import type { Destination } from "../topics/device-topics.ts";

/**
 * A message that a device publishes and may publish. `payload` is a view of the socket's bytes, `packetId` of a will is
 * 0, and other connections of the device get `properties`.
 */
export interface Publication extends Omit<PublishPacket, "type"> {
  readonly destination: Destination;
}

/** Why a connection ends. */
export type EndReason =
  | "client_closed"
  | "keep_alive"
  | "network"
  | "protocol"
  | "too_large"
  | "login_refused"
  | "no_connect"
  | "slow"
  | "taken_over"
  | "revoked"
  | "server_stop";

/** Something that a device asked for and did not get, for its diagnostics. */
export interface SessionRefusal {
  readonly name: "publication_refused" | "subscription_refused" | "subscription_limit";
  readonly reason: "topic" | "topic_too_long" | "too_large" | "filter" | "shared" | "subscriptions";
  /** The topic, or the filter. */
  readonly topic: string;
}

/** A subscription that was granted. */
export interface GrantedSubscription extends FilterSubscription {
  readonly isNew: boolean;
}

/**
 * What the surrounding of a connection has to do, in this order. What follows a `save` waits until the session is
 * stored.
 */
export type Effect =
  | { readonly do: "send"; readonly packet: OutgoingPacket }
  /** Ask who it is; the answer is `admit` or `refuse`. */
  | { readonly do: "login"; readonly connect: ConnectPacket }
  /** Store or pass on a message; at QoS 1 and 2 the answer is `stored` or `reject`. */
  | { readonly do: "publish"; readonly publication: Publication }
  /** Store what `MqttSession.keep` returns. */
  | { readonly do: "save" }
  /** Send the retained messages of these subscriptions, by `deliverRetained`. */
  | { readonly do: "send_retained"; readonly subscriptions: readonly GrantedSubscription[] }
  | { readonly do: "report"; readonly refusal: SessionRefusal }
  /** Publish the will after this time, unless the session has another connection by then. */
  | { readonly do: "will"; readonly publication: Publication; readonly delayMs: number }
  /** Count messages that the client does not get: they expired, or are larger than it takes. */
  | { readonly do: "count_dropped"; readonly why: "expired" | "too_large" }
  /** End the connection after what was sent. `detail` says what was wrong. */
  | { readonly do: "close"; readonly reason: EndReason; readonly detail: string | null };
