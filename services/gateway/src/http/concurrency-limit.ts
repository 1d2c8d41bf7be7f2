import type { PrincipalKind } from "@devmesh/contracts/principal";
import { type GatewayReason, RequestRefused } from "./gateway-errors.ts";

/** How many may be held at one time. */
export interface PlaceLimits {
  readonly ofMasterKey: number;
  readonly ofOtherKey: number;
  readonly inAll: number;
}

/**
 * The places that this gateway has for answers of one kind that go on for long: each holds memory until its client
 * has read it.
 */
export class Places {
  readonly #limits: PlaceLimits;
  readonly #refusal: GatewayReason;
  readonly #ofKey = new Map<string, number>();
  #taken = 0;

  /** `refusal`: why a request that finds no place is refused. */
  constructor(limits: PlaceLimits, refusal: GatewayReason) {
    this.#limits = limits;
    this.#refusal = refusal;
  }

  /** Takes a place for a request with this key; give it back by calling the result, once. Throws the refusal. */
  take(keyId: string, kind: PrincipalKind): () => void {
    const { ofMasterKey, ofOtherKey, inAll } = this.#limits;
    const ofThis = this.#ofKey.get(keyId) ?? 0;
    if (ofThis >= (kind === "master" ? ofMasterKey : ofOtherKey) || this.#taken >= inAll)
      throw new RequestRefused(this.#refusal, { headers: { "Retry-After": "5" } });
    this.#taken++;
    this.#ofKey.set(keyId, ofThis + 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#taken--;
      const left = (this.#ofKey.get(keyId) ?? 1) - 1;
      if (left === 0) this.#ofKey.delete(keyId);
      else this.#ofKey.set(keyId, left);
    };
  }
}
