import { IncomingQos2 } from "./incoming-qos2.ts";
import { OutgoingWindow } from "./outgoing-window.ts";
import { type KeptSubscription, SubscriptionTable } from "./subscription-table.ts";

/** A session while its client is away, as plain data. */
export interface KeptSession {
  readonly subscriptions: readonly KeptSubscription[];
  /** Packet ids of messages at QoS 2 that are stored and that the client has not released. */
  readonly held: readonly number[];
}

/** State of a client id across connections: subscriptions, and messages under way in both directions. */
export class MqttSession {
  readonly clientId: string;
  readonly subscriptions: SubscriptionTable;
  readonly incoming: IncomingQos2;
  readonly outgoing = new OutgoingWindow();
  /** How long it outlives its connection, in milliseconds; 0: not at all. */
  expiryMs = 0;

  /** A new session, or one that was kept. */
  constructor(clientId: string, kept: KeptSession = { subscriptions: [], held: [] }) {
    this.clientId = clientId;
    this.subscriptions = new SubscriptionTable(kept.subscriptions);
    this.incoming = new IncomingQos2(kept.held);
  }

  /** Data to keep, without messages in flight. */
  keep(): KeptSession {
    return { subscriptions: [...this.subscriptions], held: [...this.incoming.held] };
  }
}
