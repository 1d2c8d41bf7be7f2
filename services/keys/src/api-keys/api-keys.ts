import type { keys } from "@devmesh/contracts/keys";
import type { ApiKey } from "@devmesh/contracts/model/api-key";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { pageById } from "@devmesh/service-kit/rpc/page";
import type { AccountEvents } from "../account-events.ts";
import type { Encryption } from "../credentials/encryption.ts";
import { createSecret, digestSecret } from "../credentials/secret.ts";
import type { StoredApiKey } from "../store/api-key-store.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { KeyUses } from "./key-uses.ts";
import { endSessionsOf } from "./sessions.ts";

const pageLimit = 500;

/** Constructor arguments of the methods of keys. */
export interface ApiKeysOptions extends NewApiKeyOptions {
  readonly store: Pick<KeyStore, "apiKeys" | "credentials" | "sessions">;
  readonly events: AccountEvents;
  readonly uses: KeyUses;
  /** Whether a list shows the secrets (`KEYS_REVEAL`). */
  readonly revealInLists: boolean;
}

/** Arguments of `newApiKey`. */
export interface NewApiKeyOptions {
  readonly encryption: Encryption;
  readonly clock: Clock;
  /** Makes ids whose text order is the order of their creation. */
  readonly newId: () => string;
}

/** Lists, creates and deletes master and device keys (api.md, Keys). */
export function createApiKeys(
  options: ApiKeysOptions,
): Pick<
  Implementation<typeof keys>,
  "listKeys" | "listKeysWithoutSecrets" | "countKeys" | "createKey" | "deleteKey"
> {
  const { store, encryption, clock, events, uses, revealInLists } = options;

  const listing =
    (secretOf: (key: StoredApiKey) => string | null): Implementation<typeof keys>["listKeys"] =>
    (page, context) =>
      pageById(page, {
        most: pageLimit,
        read: ({ after = null, limit }) => store.apiKeys.list(after, limit, context.signal),
        describe: (key) => describe(withLatestUse(key), secretOf(key)),
        refuse: () => context.fail("cursor_invalid"),
      });

  return {
    listKeys: listing((key) => (revealInLists ? openApiKey(encryption, key) : null)),
    listKeysWithoutSecrets: listing(() => null),

    countKeys: async (_input, { signal }) => ({ count: await store.apiKeys.count(signal) }),

    async createKey({ access, device_id, name = null, expires_at = null }, context) {
      if (
        (access === "full" && device_id !== undefined) ||
        (access === "device" && device_id === undefined)
      ) {
        return context.fail("key_contradictory");
      }
      const now = clock.now().getTime();
      const expiry = expires_at === null ? null : Date.parse(expires_at);
      if (expiry !== null && expiry <= now)
        return context.fail("expiry_past", [{ pointer: "/expires_at", detail: "is in the past" }]);
      const epoch = device_id === undefined ? null : await epochOf(device_id, context.signal);
      if (device_id !== undefined && epoch === null) return context.fail("device_not_found");

      const secret = createSecret(device_id === undefined ? "master" : "device_key");
      const key: StoredApiKey = {
        ...newApiKey(options, secret),
        device_id: device_id ?? null,
        epoch,
        name,
        expires_at: expiry,
      };
      await store.apiKeys.insert(key, context.signal);
      // The device may have been revoked meanwhile. The key is not valid then, whatever happens here.
      if (device_id !== undefined && (await epochOf(device_id, context.signal)) !== epoch) {
        await store.apiKeys.deleteAll([key.id], context.signal);
        return context.fail("device_not_found");
      }
      events.keyChanged(key.id, "created", context);
      return describe(key, secret);
    },

    async deleteKey({ id }, context) {
      const ending = await store.apiKeys.delete(id, clock.now().getTime(), context.signal);
      if (ending === "not_found") return context.fail("key_not_found");
      if (ending === "last_master_key") return context.fail("last_master_key");
      const sessions = await endSessionsOf(store, id, context.signal);
      const revoked = events.revoked([id, ...sessions], context);
      events.keyChanged(id, "deleted", context);
      await revoked;
      return {};
    },
  };

  function withLatestUse(key: StoredApiKey): StoredApiKey {
    const noted = uses.lastOf(key.id);
    return noted === null || noted <= (key.last_used ?? 0) ? key : { ...key, last_used: noted };
  }

  async function epochOf(deviceId: string, signal: AbortSignal): Promise<string | null> {
    return (await store.credentials.find(deviceId, signal))?.epoch ?? null;
  }
}

/** A master key of this secret that never expires. */
export function newApiKey({ encryption, clock, newId }: NewApiKeyOptions, secret: string): StoredApiKey {
  const id = newId();
  return {
    id,
    digest: digestSecret(secret),
    sealed: encryption.encrypt(secret, identityOf(id)),
    device_id: null,
    epoch: null,
    name: null,
    created_at: clock.now().getTime(),
    last_used: null,
    expires_at: null,
  };
}

/** The secret of a stored API key. */
export function openApiKey(encryption: Encryption, key: StoredApiKey): string {
  return encryption.decrypt(key.sealed, identityOf(key.id));
}

function identityOf(id: string): string {
  return `api_key ${id}`;
}

function describe(key: StoredApiKey, secret: string | null): ApiKey {
  return {
    id: key.id,
    key: secret,
    access: key.device_id === null ? "full" : "device",
    device_id: key.device_id,
    name: key.name,
    created_at: new Date(key.created_at).toISOString(),
    last_used: key.last_used === null ? null : new Date(key.last_used).toISOString(),
    expires_at: key.expires_at === null ? null : new Date(key.expires_at).toISOString(),
  };
}
