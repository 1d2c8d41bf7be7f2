import type { keys } from "@devmesh/contracts/keys";
import { keyPrefixes, secretPattern } from "@devmesh/contracts/model/api-key";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { CallOutput, Implementation } from "@devmesh/service-kit/rpc/implementation";
import { type AccountEvents, publicKeyId } from "../account-events.ts";
import { digestSecret } from "../credentials/secret.ts";
import { isInvitationOver } from "../customers/invitation.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { KeyUses } from "./key-uses.ts";

type Verified = CallOutput<typeof keys, "verify">;

/** Constructor arguments of `verify`. */
export interface VerificationOptions {
  readonly store: Pick<KeyStore, "apiKeys" | "credentials" | "customers">;
  readonly clock: Clock;
  readonly uses: KeyUses;
  readonly events: AccountEvents;
}

/** Finds the principal of a secret, by its prefix and its digest. */
export function createVerification({
  store,
  clock,
  uses,
  events,
}: VerificationOptions): Pick<Implementation<typeof keys>, "verify"> {
  return {
    async verify({ key }, context) {
      return (await find(key, context)) ?? context.fail("key_invalid");
    },
  };

  async function find(secret: string, call: CallContext): Promise<Verified | null> {
    if (!secretPattern.test(secret)) return null;
    const digest = digestSecret(secret);
    const { signal } = call;
    switch (secret.slice(0, secret.indexOf("_"))) {
      case keyPrefixes.master:
      case keyPrefixes.device_key:
        return findApiKey(digest, signal);
      case keyPrefixes.public_key:
        return findPublicKey(digest, signal);
      case keyPrefixes.customer:
        return findCustomer(digest, call);
      default:
        // A session has its own method. A device token is a password for MQTT and no API key (api.md, Keys).
        return null;
    }
  }

  async function findApiKey(digest: Uint8Array, signal: AbortSignal): Promise<Verified | null> {
    const key = await store.apiKeys.findByDigest(digest, signal);
    if (key === null || (key.expires_at !== null && key.expires_at <= clock.now().getTime())) return null;
    if (key.device_id !== null) {
      const credentials = await store.credentials.find(key.device_id, signal);
      if (credentials?.epoch !== key.epoch) return null;
    }
    uses.note(key.id);
    return {
      key_id: key.id,
      principal:
        key.device_id === null ? { kind: "master" } : { kind: "device_key", device_id: key.device_id },
      expires_at: key.expires_at === null ? null : new Date(key.expires_at).toISOString(),
      ...(key.name !== null && { name: key.name }),
    };
  }

  async function findPublicKey(digest: Uint8Array, signal: AbortSignal): Promise<Verified | null> {
    const device = await store.credentials.findByPublicKey(digest, signal);
    if (device === null) return null;
    return {
      key_id: publicKeyId(device.deviceId),
      principal: { kind: "public_key", device_id: device.deviceId },
      expires_at: null,
    };
  }

  /** The first use of the token confirms the address (api.md, Customers). */
  async function findCustomer(digest: Uint8Array, call: CallContext): Promise<Verified | null> {
    const customer = await store.customers.findByTokenDigest(digest, call.signal);
    if (customer === null) return null;
    const now = clock.now().getTime();
    if (customer.confirmed_at === null) {
      if (isInvitationOver(customer, now)) return null;
      if (!(await store.customers.confirm(customer.id, now, call.signal))) return null;
      events.customerChanged(customer.id, "confirmed", call);
    }
    return {
      key_id: customer.id,
      principal: { kind: "customer", customer_id: customer.id },
      expires_at: null,
    };
  }
}
