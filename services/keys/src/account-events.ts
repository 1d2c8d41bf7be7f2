import type { keyEvents } from "@devmesh/contracts/keys";
import type { customerChanges, keyChanges } from "@devmesh/contracts/model/notification";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import type { CallContext } from "@devmesh/service-kit/rpc/context";

/** Publishes, by ids alone, what changed in the account once it is stored. A lost event is logged and fails nothing. */
export type AccountEvents = ReturnType<typeof createAccountEvents>;

/** Publishes the events of the contract. */
export function createAccountEvents(publisher: Publisher<typeof keyEvents>, clock: Clock) {
  const about = (id: string) => ({ id, timestamp: clock.now().toISOString() });
  return {
    /** Keys that are no longer valid. A gateway that misses it honours a cached key for 60 s at most (api.md, Keys). */
    async revoked(keyIds: readonly string[], call: CallContext): Promise<void> {
      if (keyIds.length > 0) await publisher.revoked({ key_ids: [...keyIds] }, { call });
    },
    /** Of a key in the lists or a session. Nobody waits two seconds for the acknowledgement of what is only shown. */
    keyChanged(id: string, change: (typeof keyChanges)[number], call: CallContext): void {
      void publisher.key_changed({ ...about(id), change }, { call });
    },
    /** Of a customer. */
    customerChanged(id: string, change: (typeof customerChanges)[number], call: CallContext): void {
      void publisher.customer_changed({ ...about(id), change }, { call });
    },
  };
}

/** Id of a device's public key in `verify` and in events: the same after a rotation, so that any crash heals. */
export function publicKeyId(deviceId: string): string {
  return `${deviceId}/public_key`;
}
