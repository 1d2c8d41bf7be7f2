import type { keys } from "@devmesh/contracts/keys";
import type { ApiKey } from "@devmesh/contracts/model/api-key";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/implementation";
import { cutPage } from "@devmesh/service-kit/page";
import type { AccountNotices } from "../customers/account-events.ts";
import type { Sealer } from "../store/encryption.ts";
import type { KeyStore } from "../store/key-store.ts";
import { type IdSource, isSortableId } from "../store/sortable-id.ts";
import type { StoredApiKey } from "./api-key-store.ts";
import type { KeyUses } from "./key-uses.ts";
import type { AnnounceRevoked } from "./revocation.ts";
import { createSecret, digestSecret } from "./secret.ts";

/** Most keys of one page. */
const pageLimit = 500;

/** What the use cases of API keys need. */
export interface ApiKeysDependencies {
  readonly store: KeyStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: IdSource;
  readonly announceRevoked: AnnounceRevoked;
  readonly notices: AccountNotices;
  /** Tells of uses that are not written yet. */
  readonly uses: Pick<KeyUses, "lastOf">;
  /** Whether a list shows the secrets (`KEYS_REVEAL`). */
  readonly revealInLists: boolean;
}

/** Lists, makes and deletes master and device keys (api.md, Keys). */
export function createApiKeys(
  dependencies: ApiKeysDependencies,
): Pick<Implementation<typeof keys>, "listKeys" | "createKey" | "deleteKey"> {
  const { store, sealer, clock, newId, announceRevoked, notices, uses, revealInLists } = dependencies;

  return {
    async listKeys({ after, limit = pageLimit }, context) {
      if (after !== undefined && !isSortableId(after)) return context.fail("cursor_invalid");
      const wanted = Math.min(limit, pageLimit);
      const stored = await store.apiKeys.list(after ?? null, wanted + 1, context.signal);
      const shown = stored.map((key) =>
        describe(withLatestUse(key), revealInLists ? openApiKey(sealer, key) : null),
      );
      return cutPage(shown, { limit: wanted, cursorOf: ({ id }) => id });
    },

    async createKey({ access, device_id, name = null, expires_at = null }, context) {
      if (
        (access === "full" && device_id !== undefined) ||
        (access === "device" && device_id === undefined)
      ) {
        return context.fail("key_contradictory");
      }
      const now = clock.now().getTime();
      const expiresAt = expires_at === null ? null : Date.parse(expires_at);
      if (expiresAt !== null && expiresAt <= now)
        return context.fail("expiry_past", [{ pointer: "/expires_at", detail: "is in the past" }]);
      const device = device_id === undefined ? null : await findDevice(device_id, context.signal);
      if (device_id !== undefined && device === null) return context.fail("device_not_found");

      const id = newId();
      const secret = createSecret(device === null ? "master" : "device_key");
      const key: StoredApiKey = {
        id,
        digest: digestSecret(secret),
        sealed: sealApiKey(sealer, id, secret),
        device,
        name,
        createdAt: now,
        lastUsed: null,
        expiresAt,
      };
      await store.apiKeys.insert(key, context.signal);
      // The device may have been revoked since it was looked up. The key stands for nobody then, whatever happens here.
      if (device !== null && (await findDevice(device.id, context.signal))?.epoch !== device.epoch) {
        await store.apiKeys.deleteAll([id], context.signal);
        return context.fail("device_not_found");
      }
      await notices.keyChanged(id, "created", context);
      return describe(key, secret);
    },

    async deleteKey({ id }, context) {
      const ending = await store.apiKeys.delete(id, clock.now().getTime(), context.signal);
      if (ending === "not_found") return context.fail("key_not_found");
      if (ending === "last_master_key") return context.fail("last_master_key");
      await Promise.all([announceRevoked([id], context), notices.keyChanged(id, "deleted", context)]);
      return {};
    },
  };

  function withLatestUse(key: StoredApiKey): StoredApiKey {
    const noted = uses.lastOf(key.id);
    return noted === null || noted <= (key.lastUsed ?? 0) ? key : { ...key, lastUsed: noted };
  }

  async function findDevice(id: string, signal: AbortSignal) {
    const credentials = await store.credentials.find(id, signal);
    return credentials === null ? null : { id, epoch: credentials.epoch };
  }
}

/** Seals the secret of an API key for its row. */
export function sealApiKey(sealer: Sealer, id: string, secret: string): Uint8Array {
  return sealer.seal(secret, identityOf(id));
}

/** The secret of a stored API key. */
export function openApiKey(sealer: Sealer, key: StoredApiKey): string {
  return sealer.open(key.sealed, identityOf(key.id));
}

function identityOf(id: string): string {
  return `api_key ${id}`;
}

function describe(key: StoredApiKey, secret: string | null): ApiKey {
  return {
    id: key.id,
    key: secret,
    access: key.device === null ? "full" : "device",
    device_id: key.device?.id ?? null,
    name: key.name,
    created_at: new Date(key.createdAt).toISOString(),
    last_used: key.lastUsed === null ? null : new Date(key.lastUsed).toISOString(),
    expires_at: key.expiresAt === null ? null : new Date(key.expiresAt).toISOString(),
  };
}
