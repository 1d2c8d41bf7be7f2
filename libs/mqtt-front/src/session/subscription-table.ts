import { mqttBounds } from "@devmesh/contracts/mqtt";
import type { FilterSubscription, Qos } from "../packets/packet.ts";
import { matches } from "../topics/topic-filter.ts";

/** A subscription as it is kept. */
export interface KeptSubscription extends FilterSubscription {
  /** Of MQTT 5; null without one. */
  readonly identifier: number | null;
}

/** How a client receives a message that its subscriptions select. */
export interface SubscriptionMatch {
  /** The highest of those that match. */
  readonly qos: Qos;
  readonly retainAsPublished: boolean;
  readonly identifiers: readonly number[];
}

interface TableRow {
  readonly subscription: KeptSubscription;
  readonly levels: readonly string[];
}

/** The subscriptions of one session. Several that select a message deliver it once. */
export class SubscriptionTable {
  readonly #rows = new Map<string, TableRow>();

  constructor(subscriptions: Iterable<KeptSubscription> = []) {
    for (const subscription of subscriptions) this.add(subscription);
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Adds one or replaces that of the same filter; `full` beyond the bound of a session. */
  add(subscription: KeptSubscription): "new" | "replaced" | "full" {
    const { filter } = subscription;
    const isNew = !this.#rows.has(filter);
    if (isNew && this.#rows.size >= mqttBounds.subscriptions) return "full";
    this.#rows.set(filter, { subscription, levels: filter.split("/") });
    return isNew ? "new" : "replaced";
  }

  /** Whether there was one. */
  remove(filter: string): boolean {
    return this.#rows.delete(filter);
  }

  find(filter: string): KeptSubscription | null {
    return this.#rows.get(filter)?.subscription ?? null;
  }

  /** The subscriptions that match a topic; null for none. `isOwn`: the client itself published the message. */
  match(topic: string, isOwn: boolean): SubscriptionMatch | null {
    if (this.#rows.size === 0) return null;
    const levels = topic.split("/");
    let qos: Qos | null = null;
    let retainAsPublished = false;
    const identifiers: number[] = [];
    for (const row of this.#rows.values()) {
      const { subscription } = row;
      if ((isOwn && subscription.noLocal) || !matches(row.levels, levels)) continue;
      if (qos === null || subscription.qos > qos) qos = subscription.qos;
      retainAsPublished ||= subscription.retainAsPublished;
      if (subscription.identifier !== null) identifiers.push(subscription.identifier);
    }
    return qos === null ? null : { qos, retainAsPublished, identifiers };
  }

  *[Symbol.iterator](): Generator<KeptSubscription> {
    for (const { subscription } of this.#rows.values()) yield subscription;
  }
}
