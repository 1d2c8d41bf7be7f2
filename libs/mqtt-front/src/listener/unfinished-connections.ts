import { addressGroup } from "../address-group.ts";

/** How many connections may be open that have not sent a whole CONNECT. */
export interface UnfinishedLimits {
  readonly perAddress: number;
  readonly total: number;
}

/** Of an address, or an IPv6 network of 64 bits, and of all. */
const unfinishedLimits: UnfinishedLimits = { perAddress: 200, total: 2_000 };

/**
 * Connections that have not sent a whole CONNECT, by address. Beyond a bound the oldest one goes, of the address with
 * most: an attacker pushes out its own connections.
 */
export class UnfinishedConnections<Connection> {
  readonly #limits: UnfinishedLimits;
  /** In each address, the oldest comes first. */
  readonly #byAddress = new Map<string, Set<Connection>>();
  /** Addresses by how many connections they have; index 0 is empty. */
  readonly #byCount: Set<string>[] = [];
  #count = 0;

  constructor(limits: UnfinishedLimits = unfinishedLimits) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds a connection; returns the one that has to be closed for it, which may be itself never. */
  add(connection: Connection, address: string): Connection | null {
    const group = addressGroup(address);
    const ofAddress = this.#byAddress.get(group) ?? new Set();
    this.#byAddress.set(group, ofAddress);
    const crowded = ofAddress.size >= this.#limits.perAddress ? group : null;
    const fullest = this.#count >= this.#limits.total ? this.#fullest() : null;
    const victim = this.#oldestOf(crowded ?? fullest);
    if (victim !== null) this.#remove(victim.connection, victim.group);
    // The last connection of the address may just have gone.
    this.#byAddress.set(group, ofAddress);
    ofAddress.add(connection);
    this.#moved(group, ofAddress.size - 1, ofAddress.size);
    this.#count++;
    return victim?.connection ?? null;
  }

  /** A connection has sent its CONNECT or has ended. */
  remove(connection: Connection, address: string): void {
    this.#remove(connection, addressGroup(address));
  }

  #remove(connection: Connection, group: string): void {
    const ofAddress = this.#byAddress.get(group);
    if (ofAddress?.delete(connection) !== true) return;
    this.#count--;
    this.#moved(group, ofAddress.size + 1, ofAddress.size);
    if (ofAddress.size === 0) this.#byAddress.delete(group);
  }

  #moved(group: string, from: number, to: number): void {
    this.#byCount[from]?.delete(group);
    while (this.#byCount.length > 0 && this.#byCount.at(-1)?.size === 0) this.#byCount.pop();
    if (to === 0) return;
    while (this.#byCount.length <= to) this.#byCount.push(new Set());
    this.#byCount[to]?.add(group);
  }

  #fullest(): string | null {
    const { value } = this.#byCount.at(-1)?.values().next() ?? {};
    return value ?? null;
  }

  #oldestOf(group: string | null): { readonly connection: Connection; readonly group: string } | null {
    if (group === null) return null;
    const oldest = this.#byAddress.get(group)?.values().next();
    return oldest === undefined || oldest.done === true ? null : { connection: oldest.value, group };
  }
}
