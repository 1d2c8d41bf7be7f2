import type { PrincipalKind } from "@devmesh/contracts/principal";
import { RequestRefused } from "./gateway-errors.ts";

/** How many listeners a stream may have. */
export interface ListenerLimits {
  readonly ofMasterKey: number;
  readonly ofOtherKey: number;
  readonly inAll: number;
}

/** The places that one stream of this gateway has for listeners. */
export class ListenerPlaces {
  readonly #limits: ListenerLimits;
  readonly #ofKey = new Map<string, number>();
  #taken = 0;

  constructor(limits: ListenerLimits) {
    this.#limits = limits;
  }

  /** Takes a place for a listener with this key; give it back by calling the result, once. Throws `too_many_listeners`. */
  take(keyId: string, kind: PrincipalKind): () => void {
    const { ofMasterKey, ofOtherKey, inAll } = this.#limits;
    const ofThis = this.#ofKey.get(keyId) ?? 0;
    if (ofThis >= (kind === "master" ? ofMasterKey : ofOtherKey) || this.#taken >= inAll)
      throw new RequestRefused("too_many_listeners", { headers: { "Retry-After": "5" } });
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
