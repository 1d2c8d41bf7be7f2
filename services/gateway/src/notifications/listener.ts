import type { Principal } from "@devmesh/contracts/principal";
import type { Caller } from "../http/exchange.ts";
import type { Farewell, Outlet } from "./sink.ts";

/** Principals that may listen. */
export type ListenerPrincipal = Extract<Principal, { readonly kind: "master" | "public_key" }>;

/** What a client asked to hear. */
export interface ListenerWishes {
  /** Only what happens to this device; undefined for all. A public key's own device. */
  readonly device: string | undefined;
  /** Records as they are stored. */
  readonly data: boolean;
  /** Changes of keys and customers. */
  readonly account: boolean;
  /** The last sequence it knows; undefined to hear what happens from now on. */
  readonly after: number | undefined;
}

/** One client of the notification stream. */
export class Listener {
  readonly principal: ListenerPrincipal;
  readonly caller: Caller;
  readonly wishes: ListenerWishes;
  readonly outlet: Outlet;
  /** When its key is to be looked at again, on the monotonic clock. */
  checkAtMs = 0;
  readonly #maxWaitingBytes: number;
  readonly #onSlow: () => void;
  #ended = false;

  constructor(options: {
    readonly principal: ListenerPrincipal;
    readonly caller: Caller;
    readonly wishes: ListenerWishes;
    readonly outlet: Outlet;
    readonly maxWaitingBytes: number;
    /** Called when it is closed because it reads too slowly. */
    readonly onSlow: () => void;
  }) {
    this.principal = options.principal;
    this.caller = options.caller;
    this.wishes = options.wishes;
    this.outlet = options.outlet;
    this.#maxWaitingBytes = options.maxWaitingBytes;
    this.#onSlow = options.onSlow;
    void options.outlet.gone.then(() => {
      this.#ended = true;
    });
  }

  /** Whether it gets nothing any more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Sends whole frames; one that has too many of them waiting is closed instead. */
  send(bytes: Uint8Array): void {
    if (this.#ended) return;
    if (this.outlet.waitingBytes > this.#maxWaitingBytes) {
      this.closeAsSlow();
      return;
    }
    this.outlet.write(bytes);
  }

  closeAsSlow(): void {
    if (this.#ended) return;
    this.close({ code: 1013, reason: "too slow" });
    this.#onSlow();
  }

  close(farewell: Farewell): void {
    if (this.#ended) return;
    this.#ended = true;
    this.outlet.close(farewell);
  }
}
