import type { PrincipalKind } from "@devmesh/contracts/principal";
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
  readonly #perKey = new Map<string, number>();
  #total = 0;

  constructor(options: ConcurrencyLimitOptions) {
    this.#options = options;
  }

  /** Takes a slot; call the result to release it. Throws the refusal where none is free. */
  acquire(keyId: string, kind: PrincipalKind): () => void {
    const { perMasterKey, perOtherKey, total, refusal } = this.#options;
    const running = this.#perKey.get(keyId) ?? 0;
    if (running >= (kind === "master" ? perMasterKey : perOtherKey) || this.#total >= total)
      throw new RequestRefused(refusal, { headers: { "Retry-After": "5" } });
    this.#total++;
    this.#perKey.set(keyId, running + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#total--;
      const left = (this.#perKey.get(keyId) ?? 1) - 1;
      if (left === 0) this.#perKey.delete(keyId);
      else this.#perKey.set(keyId, left);
    };
  }
}
