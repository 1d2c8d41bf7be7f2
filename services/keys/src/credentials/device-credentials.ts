import { randomUUID } from "node:crypto";
import type { keys } from "@devmesh/contracts/keys";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { type AccountEvents, publicKeyId } from "../account-events.ts";
import type { StoredCredentials, StoredSecret } from "../store/credential-store.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { Encryption } from "./encryption.ts";
import { createSecret, digestSecret } from "./secret.ts";

type CredentialKind = "token" | "public_key";

/** Constructor arguments of the methods of credentials. */
export interface DeviceCredentialsOptions {
  readonly store: Pick<KeyStore, "apiKeys" | "credentials">;
  readonly encryption: Encryption;
  readonly events: AccountEvents;
}

/** Issues, shows, rotates and revokes the two secrets of a device (api.md, Device; ADR 14). */
export function createDeviceCredentials({
  store,
  encryption,
  events,
}: DeviceCredentialsOptions): Pick<
  Implementation<typeof keys>,
  "issueCredentials" | "readCredentials" | "rotateToken" | "rotatePublicKey" | "revokeDevice" | "forgetDevice"
> {
  return {
    /** Two calls at a time, or one repeated after a lost answer, get the same secrets. */
    async issueCredentials({ device_id }, context) {
      const issue = { deviceId: device_id, epoch: randomUUID() };
      const token = createSecret("device");
      const public_key = createSecret("public_key");
      const issued = await store.credentials.issue(
        {
          ...issue,
          token: encrypted(issue, "token", token),
          publicKey: encrypted(issue, "public_key", public_key),
        },
        context.signal,
      );
      if (issued === "revoked") return context.fail("credentials_revoked");
      return issued.epoch === issue.epoch ? { token, public_key } : open(issued);
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

    /** Also revokes the device keys. Their rows are deleted last, so that a repeated call finds them. */
    async revokeDevice({ device_id }, context) {
      const clientIds = await store.credentials.revoke(device_id, context.signal);
      const keyIds = await store.apiKeys.listIdsOfDevice(device_id, context.signal);
      await events.revoked([publicKeyId(device_id), tokenId(device_id), ...keyIds], context);
      await store.apiKeys.deleteAll(keyIds, context.signal);
      for (const id of keyIds) events.keyChanged(id, "deleted", context);
      return { client_ids: await withoutOtherDevices(device_id, clientIds, context.signal) };
    },

    async forgetDevice({ device_id }, context) {
      await store.credentials.forget(device_id, context.signal);
      return {};
    },
  };

  /** A client id that the broker generated may meanwhile be the id of another device, which then owns the session. */
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
    const secretOfRow = encrypted(credentials, kind, secret);
    const replaced = await store.credentials.replace(
      deviceId,
      credentials.epoch,
      kind === "token" ? { token: secretOfRow } : { publicKey: secretOfRow },
      context.signal,
    );
    if (replaced)
      await events.revoked([kind === "token" ? tokenId(deviceId) : publicKeyId(deviceId)], context);
    return replaced;
  }

  function encrypted(issue: Issue, kind: CredentialKind, secret: string): StoredSecret {
    return { digest: digestSecret(secret), sealed: encryption.encrypt(secret, identityOf(issue, kind)) };
  }

  function open(credentials: StoredCredentials) {
    return {
      token: encryption.decrypt(credentials.token.sealed, identityOf(credentials, "token")),
      public_key: encryption.decrypt(credentials.publicKey.sealed, identityOf(credentials, "public_key")),
    };
  }
}

type Issue = Pick<StoredCredentials, "deviceId" | "epoch">;

function identityOf({ deviceId, epoch }: Issue, kind: CredentialKind): string {
  return `device ${deviceId} ${epoch} ${kind}`;
}

/** Id of a device's token in events. */
function tokenId(deviceId: string): string {
  return `${deviceId}/token`;
}
