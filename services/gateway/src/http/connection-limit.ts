import type { Socket } from "node:net";
import { rateAddress } from "./exchange.ts";
import type { HttpMetrics } from "./http-metrics.ts";

export interface ConnectionLimitOptions {
  readonly perAddress: number;
  readonly total: number;
  /** Whether a peer is a trusted proxy: many clients share its connections, so only the total bounds them. */
  readonly isProxy: (address: string | undefined) => boolean;
  readonly metrics: Pick<HttpMetrics, "connections" | "connectionsClosed">;
}

/** An open connection; it is idle until it is taken. */
export interface ConnectionSlot {
  /** A request begins. */
  take(): void;
  /** No request is under way. */
  rest(): void;
}

interface AddressShare {
  open: number;
  /** Slots of its connections without a request, the one that rests for longest first. */
  readonly idle: Set<Slot>;
}

interface Slot {
  readonly socket: Socket;
  readonly address: string;
  /** None for a trusted proxy. */
  readonly share: AddressShare | undefined;
}

/**
 * Bounds the open connections of an address, and of all. Beyond the bound, the connection that is idle for longest
 * closes; where none is idle, the new one.
 */
export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #shares = new Map<string, AddressShare>();
  readonly #open = new Set<Slot>();
  readonly #idle = new Set<Slot>();

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
  }

  /** A slot until the socket closes; null where none is free. */
  admit(socket: Socket): ConnectionSlot | null {
    const { perAddress, total, isProxy } = this.#options;
    const { remoteAddress } = socket;
    const address = rateAddress(remoteAddress);
    const share = isProxy(remoteAddress) ? undefined : (this.#shares.get(address) ?? newShare());
    if (share !== undefined && share.open >= perAddress && !this.#closeOne(share.idle, "address"))
      return this.#refuse("address");
    if (this.#open.size >= total && !this.#closeOne(this.#idle, "total")) return this.#refuse("total");
    const slot: Slot = { socket, address, share };
    if (share !== undefined) {
      share.open++;
      this.#shares.set(address, share);
    }
    this.#open.add(slot);
    this.#options.metrics.connections.inc();
    this.#rest(slot);
    socket.once("close", () => this.#remove(slot));
    return { take: () => this.#take(slot), rest: () => this.#rest(slot) };
  }

  #take(slot: Slot): void {
    this.#idle.delete(slot);
    slot.share?.idle.delete(slot);
  }

  #rest(slot: Slot): void {
    if (!this.#open.has(slot)) return;
    this.#idle.add(slot);
    slot.share?.idle.add(slot);
  }

  #closeOne(idle: ReadonlySet<Slot>, bound: Bound): boolean {
    const [longest] = idle;
    if (longest === undefined) return false;
    this.#options.metrics.connectionsClosed.inc({ bound });
    longest.socket.destroy();
    this.#remove(longest);
    return true;
  }

  #refuse(bound: Bound): null {
    this.#options.metrics.connectionsClosed.inc({ bound });
    return null;
  }

  #remove(slot: Slot): void {
    if (!this.#open.delete(slot)) return;
    this.#take(slot);
    this.#options.metrics.connections.dec();
    const { share, address } = slot;
    if (share !== undefined && --share.open === 0) this.#shares.delete(address);
  }
}

type Bound = "address" | "total";

function newShare(): AddressShare {
  return { open: 0, idle: new Set() };
}
