import { IncomingQos2 } from "./incoming-qos2.ts";
import { OutgoingWindow } from "./outgoing-window.ts";
import { type KeptSubscription, SubscriptionTable } from "./subscription-table.ts";

/** What is kept of a session while its client is away, as plain data. */
export interface KeptSession {
  readonly subscriptions: readonly KeptSubscription[];
  /** Packet ids of messages at QoS 2 that are stored and that the client has not released. */
  readonly held: readonly number[];
}

/** What belongs to a client id and outlives a connection: subscriptions, and messages under way in both directions. */
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

  /** What to keep. Messages in flight are not part of it. */
  keep(): KeptSession {
    return { subscriptions: [...this.subscriptions], held: [...this.incoming.held] };
  }
}
