import type { Principal } from "@devmesh/contracts/principal";
import { KeyedSlots } from "@devmesh/service-kit/keyed-slots";
import { type GatewayReason, RequestRefused } from "./gateway-errors.ts";

export interface ConcurrencyLimitOptions {
  readonly perMasterKey: number;
  readonly perOtherKey: number;
  readonly total: number;
  /** Reason of the refusal. */
  readonly refusal: GatewayReason;
}

/** Limits answers of one kind that last long: each holds memory until its client has read it. */
export class ConcurrencyLimit {
  readonly #options: ConcurrencyLimitOptions;
  readonly #slots: KeyedSlots;

  constructor(options: ConcurrencyLimitOptions) {
    this.#options = options;
    this.#slots = new KeyedSlots(options);
  }

  /** Takes a slot; call the result to release it. Throws the refusal where none is free. */
  acquire(keyId: string, kind: Principal["kind"]): () => void {
    const { perMasterKey, perOtherKey, refusal } = this.#options;
    const release = this.#slots.acquire(keyId, kind === "master" ? perMasterKey : perOtherKey);
    if (release === null) throw new RequestRefused(refusal, { headers: { "Retry-After": "5" } });
    return release;
  }
}
