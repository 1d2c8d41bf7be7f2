import type { keyEvents } from "@devmesh/contracts/keys";
import type { customerChanges, keyChanges } from "@devmesh/contracts/model/notification";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";

/** Publishes, by ids alone, what changed in the account once it is stored. A lost event is logged and fails nothing. */
export interface AccountEvents {
  /** Keys that are no longer valid. A gateway that misses it honours a cached key for 60 s at most (api.md, Keys). */
  revoked(keyIds: readonly string[], call: CallContext): Promise<void>;
  /** Of a master or device key. */
  keyChanged(id: string, change: (typeof keyChanges)[number], call: CallContext): Promise<void>;
  customerChanged(id: string, change: (typeof customerChanges)[number], call: CallContext): Promise<void>;
}

/** Publishes the events of the contract. */
export function createAccountEvents(publisher: Publisher<typeof keyEvents>, clock: Clock): AccountEvents {
  const { bestEffort } = publisher;
  const at = () => clock.now().toISOString();
  return {
    async revoked(keyIds, call) {
      if (keyIds.length > 0) await bestEffort.revoked({ key_ids: [...keyIds] }, { call });
    },
    keyChanged: (id, change, call) => bestEffort.key_changed({ id, change, timestamp: at() }, { call }),
    customerChanged: (id, change, call) =>
      bestEffort.customer_changed({ id, change, timestamp: at() }, { call }),
  };
}

/** Id of a device's public key in `verify` and in events: the same after a rotation, so that any crash heals. */
export function publicKeyId(deviceId: string): string {
  return `${deviceId}/public_key`;
}
