import type { keyEvents } from "@devmesh/contracts/keys";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";

/**
 * Tells every replica of the gateway which keys no longer stand for anyone. Said after the store has it, so that nobody
 * finds the key valid again. When the process dies before it is said, or the broker is away, a cache ends by its own
 * life of 60 s (api.md, Keys): a lost event is logged and fails nothing.
 */
export type AnnounceRevoked = (keyIds: readonly string[], call: CallContext) => Promise<void>;

/** Announces by the `revoked` event. */
export function createAnnouncer(publisher: Publisher<typeof keyEvents>): AnnounceRevoked {
  return async (keyIds, call) => {
    if (keyIds.length > 0) await publisher.bestEffort.revoked({ key_ids: [...keyIds] }, { call });
  };
}

/**
 * Id of a device's public key in `verify` and in events. One for all that the device ever had, so that any crash
 * heals.
 */
export function publicKeyId(deviceId: string): string {
  return `${deviceId}/public_key`;
}

/** Id of a device's token in events. */
export function tokenId(deviceId: string): string {
  return `${deviceId}/token`;
}
