import { randomUUID } from "node:crypto";
import type { keys } from "@devmesh/contracts/keys";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Implementation } from "@devmesh/service-kit/implementation";
import { type AnnounceRevoked, publicKeyId, tokenId } from "../api-keys/revocation.ts";
import { createSecret, digestSecret } from "../api-keys/secret.ts";
import type { AccountNotices } from "../customers/account-events.ts";
import type { Sealer } from "../store/encryption.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { StoredCredentials, StoredSecret } from "./credential-store.ts";

type CredentialKind = "token" | "public_key";

/** What the use cases of device credentials need. */
export interface DeviceCredentialsDependencies {
  readonly store: KeyStore;
  readonly sealer: Sealer;
  readonly announceRevoked: AnnounceRevoked;
  readonly notices: AccountNotices;
}

/** Issues, shows, rotates and ends the two secrets of a device (api.md, Device; ADR 14). */
export function createDeviceCredentials(
  dependencies: DeviceCredentialsDependencies,
): Pick<
  Implementation<typeof keys>,
  "issueCredentials" | "readCredentials" | "rotateToken" | "rotatePublicKey" | "revokeDevice" | "forgetDevice"
> {
  const { store, sealer, announceRevoked, notices } = dependencies;

  return {
    /**
     * Two calls at the same time, or one repeated after a lost answer, get the same secrets: neither kills the
     * other's.
     */
    async issueCredentials({ device_id }, context) {
      const issue = { deviceId: device_id, epoch: randomUUID() };
      const issued = await store.credentials.issue(
        {
          ...issue,
          token: sealSecret(issue, "token", createSecret("device")),
          publicKey: sealSecret(issue, "public_key", createSecret("public_key")),
        },
        context.signal,
      );
      return issued === "revoked" ? context.fail("credentials_revoked") : open(issued);
    },

    async readCredentials({ device_id }, context) {
      const credentials = await store.credentials.find(device_id, context.signal);
      return credentials === null ? context.fail("device_not_found") : open(credentials);
    },

    async rotateToken({ device_id }, context) {
      const token = createSecret("device");
      if (!(await replace(device_id, "token", token, context))) return context.fail("device_not_found");
      return { token };
    },

    async rotatePublicKey({ device_id }, context) {
      const public_key = createSecret("public_key");
      if (!(await replace(device_id, "public_key", public_key, context)))
        return context.fail("device_not_found");
      return { public_key };
    },

    /**
     * Once the credentials are revoked, device keys stand for nobody either, since they are bound to them. The rows of
     * the keys go last: when a crash comes between, the repeated call still finds which keys to announce.
     */
    async revokeDevice({ device_id }, context) {
      const clientIds = await store.credentials.revoke(device_id, context.signal);
      const keyIds = await store.apiKeys.listIdsOfDevice(device_id, context.signal);
      await announceRevoked([publicKeyId(device_id), tokenId(device_id), ...keyIds], context);
      await store.apiKeys.deleteAll(keyIds, context.signal);
      await Promise.all(keyIds.map((id) => notices.keyChanged(id, "deleted", context)));
      return { client_ids: await withoutOtherDevices(device_id, clientIds, context.signal) };
    },

    async forgetDevice({ device_id }, context) {
      await store.credentials.forget(device_id, context.signal);
      return {};
    },
  };

  /**
   * A client id of the form that the broker makes up may meanwhile be the id of another device, whose session it then
   * is.
   */
  async function withoutOtherDevices(deviceId: string, clientIds: readonly string[], signal: AbortSignal) {
    const own: string[] = [];
    for (const clientId of clientIds) {
      const ofForm = clientId === deviceId || clientId.startsWith(`${deviceId}:`);
      if (ofForm || !(await store.credentials.isKnown(clientId, signal))) own.push(clientId);
    }
    return own;
  }

  async function replace(deviceId: string, kind: CredentialKind, secret: string, context: CallContext) {
    const credentials = await store.credentials.find(deviceId, context.signal);
    if (credentials === null) return false;
    const sealed = sealSecret(credentials, kind, secret);
    const replaced = await store.credentials.replace(
      deviceId,
      credentials.epoch,
      kind === "token" ? { token: sealed } : { publicKey: sealed },
      context.signal,
    );
    if (replaced)
      await announceRevoked([kind === "token" ? tokenId(deviceId) : publicKeyId(deviceId)], context);
    return replaced;
  }

  function sealSecret(issue: Issue, kind: CredentialKind, secret: string): StoredSecret {
    return { digest: digestSecret(secret), sealed: sealer.seal(secret, identityOf(issue, kind)) };
  }

  function open(credentials: StoredCredentials) {
    return {
      token: sealer.open(credentials.token.sealed, identityOf(credentials, "token")),
      public_key: sealer.open(credentials.publicKey.sealed, identityOf(credentials, "public_key")),
    };
  }
}

type Issue = Pick<StoredCredentials, "deviceId" | "epoch">;

function identityOf({ deviceId, epoch }: Issue, kind: CredentialKind): string {
  return `device ${deviceId} ${epoch} ${kind}`;
}
