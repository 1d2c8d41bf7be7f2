import type { Principal } from "@devmesh/contracts/principal";
import type { Caller } from "../http/exchange.ts";
import type { CloseReason, Sink } from "./sink.ts";

/** Kinds of principals that may subscribe. */
export const listenerKinds = ["master", "public_key"] as const;

export type ListenerPrincipal = Extract<Principal, { readonly kind: (typeof listenerKinds)[number] }>;

/** What a client subscribes to. */
export interface SubscriptionOptions {
  /** The only device, a public key's own; undefined for all. */
  readonly device: string | undefined;
  /** Records as they are stored. */
  readonly data: boolean;
  /** Changes of keys and customers. */
  readonly account: boolean;
  /** The last sequence that the client knows; undefined to begin now. */
  readonly after: number | undefined;
}

export interface ListenerOptions {
  readonly principal: ListenerPrincipal;
  readonly caller: Caller;
  /** Whether keys in frames are redacted, as for a session. */
  readonly isRedacted: boolean;
  readonly subscription: SubscriptionOptions;
  readonly sink: Sink;
  readonly maxWaitingBytes: number;
  /** Called when the listener is closed because it reads too slowly. */
  readonly onSlow: () => void;
}

/** One client of the notification stream. */
export class Listener {
  readonly principal: ListenerPrincipal;
  readonly caller: Caller;
  readonly isRedacted: boolean;
  readonly subscription: SubscriptionOptions;
  readonly sink: Sink;
  /** When its key is verified again, on the monotonic clock. */
  checkAtMs = 0;
  readonly #options: ListenerOptions;
  #ended = false;

  constructor(options: ListenerOptions) {
    this.principal = options.principal;
    this.caller = options.caller;
    this.isRedacted = options.isRedacted;
    this.subscription = options.subscription;
    this.sink = options.sink;
    this.#options = options;
    void options.sink.gone.then(() => {
      this.#ended = true;
    });
  }

  /** Whether nothing is sent any more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Sends whole frames; closes the listener where too many bytes wait. */
  send(bytes: Uint8Array): void {
    if (this.#ended) return;
    if (this.sink.waitingBytes > this.#options.maxWaitingBytes) this.closeAsSlow();
    else this.sink.write(bytes);
  }

  closeAsSlow(): void {
    if (this.#ended) return;
    this.close({ code: 1013, reason: "too slow" });
    this.#options.onSlow();
  }

  close(reason: CloseReason): void {
    if (this.#ended) return;
    this.#ended = true;
    this.sink.close(reason);
  }
}
