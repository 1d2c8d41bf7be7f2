import { mqttBounds } from "@devmesh/contracts/mqtt";

/** Aliases that a client may give topics, and that are given to topics of a client that takes as many. */
export const topicAliasMaximum = 16;

/** The names that a client gave to topics on one connection. */
export class IncomingAliases {
  readonly #topics = new Map<number, string>();

  /** The topic of a PUBLISH; null for an alias that is not allowed or not known. */
  resolve(topic: string, alias: number | undefined): string | null {
    if (alias === undefined) return topic;
    if (alias === 0 || alias > topicAliasMaximum) return null;
    if (topic === "") return this.#topics.get(alias) ?? null;
    // A longer topic is refused, and would only take memory.
    if (topic.length > mqttBounds.recordTopicBytes) this.#topics.delete(alias);
    else this.#topics.set(alias, topic);
    return topic;
  }
}

/** The aliases of topics towards a client on one connection: the first topics get one. */
export class OutgoingAliases {
  readonly #maximum: number;
  readonly #aliases = new Map<string, number>();

  /** `maximum` of the client; 0: it takes none. */
  constructor(maximum: number) {
    this.#maximum = Math.min(maximum, topicAliasMaximum);
  }

  /** The topic and alias to send; an empty topic once the client knows the alias. */
  apply(topic: string): { readonly topic: string; readonly topicAlias?: number } {
    if (this.#maximum === 0) return { topic };
    const known = this.#aliases.get(topic);
    if (known !== undefined) return { topic: "", topicAlias: known };
    if (this.#aliases.size >= this.#maximum) return { topic };
    const topicAlias = this.#aliases.size + 1;
    this.#aliases.set(topic, topicAlias);
    return { topic, topicAlias };
  }
}
