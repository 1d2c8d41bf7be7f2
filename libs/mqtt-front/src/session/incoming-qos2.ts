import { PacketIdSet } from "./packet-id-set.ts";

/**
 * Messages at QoS 2 that a client has sent and not released. A message is published when it comes; its id is kept until
 * its PUBREL, so that one that comes again is not published again.
 */
export class IncomingQos2 {
  readonly #storing = new PacketIdSet();
  readonly #held: PacketIdSet = new PacketIdSet();

  /** Begins with the ids of an earlier connection that were stored and not released. */
  constructor(held: Iterable<number> = []) {
    for (const id of held) this.#held.add(id);
  }

  /** Ids that are stored and not released. */
  get held(): Iterable<number> {
    return this.#held;
  }

  /** Whether the id is new and its message must be published, or is being stored, or is stored. */
  begin(id: number): "new" | "storing" | "held" {
    if (this.#held.has(id)) return "held";
    if (this.#storing.has(id)) return "storing";
    this.#storing.add(id);
    return "new";
  }

  /** The message is stored. False where nobody waits for it. */
  stored(id: number): boolean {
    if (!this.#storing.delete(id)) return false;
    this.#held.add(id);
    return true;
  }

  /** The message was not taken; its id is free. */
  reject(id: number): boolean {
    return this.#storing.delete(id);
  }

  /** Frees the id at its PUBREL; false for one that is not held. */
  release(id: number): boolean {
    return this.#held.delete(id);
  }
}
