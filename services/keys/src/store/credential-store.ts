/** The secrets of a device that has access. */
export interface StoredCredentials {
  readonly deviceId: string;
  /** Random, new with each issue: a device key of an earlier issue never matches a later one. */
  readonly epoch: string;
  readonly token: StoredSecret;
  readonly publicKey: StoredSecret;
}

/** A secret as it is stored: its SHA-256, and encrypted for its row. */
export interface StoredSecret {
  readonly digest: Uint8Array;
  readonly sealed: Uint8Array;
}

/** What an MQTT login is checked against. */
export interface StoredLogin {
  readonly epoch: string;
  readonly tokenDigest: Uint8Array;
  /** When this client id was last recorded for the device, Unix milliseconds; null when it never was. */
  readonly clientSeenAt: number | null;
}

/** A client id of a device that is about to be admitted. */
export interface SeenClient {
  readonly deviceId: string;
  /** The credentials that the login was checked against. */
  readonly epoch: string;
  readonly tokenDigest: Uint8Array;
  readonly clientId: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** By the broker, for a client that sent none. */
  readonly generated: boolean;
}

/** Device credentials, one document a device until `forget`. Needs unique keys and atomic writes of one (ADR 3). */
export interface CredentialStore {
  /** Stores credentials unless the device has some; returns the stored ones, or `revoked`. */
  issue(credentials: StoredCredentials, signal: AbortSignal): Promise<StoredCredentials | "revoked">;
  /** The credentials of a device that has access. */
  find(deviceId: string, signal: AbortSignal): Promise<StoredCredentials | null>;
  findByPublicKey(digest: Uint8Array, signal: AbortSignal): Promise<{ deviceId: string } | null>;
  /** Whether the device has credentials or has not been forgotten yet. */
  isKnown(deviceId: string, signal: AbortSignal): Promise<boolean>;
  /** False when the device no longer has the credentials of that epoch. */
  replace(
    deviceId: string,
    epoch: string,
    secrets: { readonly token: StoredSecret } | { readonly publicKey: StoredSecret },
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Deletes the secrets and returns the client ids, which stay. Idempotent, also for an unknown device. */
  revoke(deviceId: string, signal: AbortSignal): Promise<string[]>;
  /** Deletes what `revoke` kept; credentials that are not revoked stay. */
  forget(deviceId: string, signal: AbortSignal): Promise<void>;
  /** Null when the device has no access. */
  findLogin(deviceId: string, clientId: string, signal: AbortSignal): Promise<StoredLogin | null>;
  /**
   * Records a client id durably, and drops the least useful ones beyond `maxKnownClientIds`. False, and nothing
   * recorded, when epoch or token have changed: the login must be refused.
   */
  recordClient(client: SeenClient, signal: AbortSignal): Promise<boolean>;
}
