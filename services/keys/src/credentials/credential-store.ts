/** The secrets of a device that has access. */
export interface StoredCredentials {
  readonly deviceId: string;
  /** Random, new with each issue: what hangs on an earlier issue of the same device id can never match a later one. */
  readonly epoch: string;
  readonly token: StoredSecret;
  readonly publicKey: StoredSecret;
}

/** A secret as it is stored: SHA-256 to find it by, and sealed for its row. */
export interface StoredSecret {
  readonly digest: Uint8Array;
  readonly sealed: Uint8Array;
}

/** What an MQTT login is decided by. */
export interface StoredLogin {
  readonly epoch: string;
  readonly tokenDigest: Uint8Array;
  /** When this client id was last recorded for the device, Unix milliseconds; null when it never was. */
  readonly clientSeenAt: number | null;
}

/** A client id under which a device is about to be admitted. */
export interface SeenClient {
  readonly deviceId: string;
  /** The credentials that the login was checked against. */
  readonly epoch: string;
  readonly tokenDigest: Uint8Array;
  readonly clientId: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** The broker gave the id to a client that sent none. */
  readonly generated: boolean;
}

/**
 * Where device credentials are kept: one document a device, which outlives its revocation until `forget`.
 * Asks of a store unique keys and atomic writes of one document, no more.
 */
export interface CredentialStore {
  /** Stores credentials unless the device has some; answers those that stand after it, or `revoked`. */
  issue(credentials: StoredCredentials, signal: AbortSignal): Promise<StoredCredentials | "revoked">;
  /** The credentials of a device that has access. */
  find(deviceId: string, signal: AbortSignal): Promise<StoredCredentials | null>;
  /** The device that has access by that public key. */
  findByPublicKey(digest: Uint8Array, signal: AbortSignal): Promise<{ deviceId: string } | null>;
  /** Whether the device has credentials or has not been forgotten yet. */
  isKnown(deviceId: string, signal: AbortSignal): Promise<boolean>;
  /** Replaces a secret; false when the device has no longer the credentials of that epoch. */
  replace(
    deviceId: string,
    epoch: string,
    secrets: { readonly token: StoredSecret } | { readonly publicKey: StoredSecret },
    signal: AbortSignal,
  ): Promise<boolean>;
  /**
   * Drops the secrets and keeps the client ids, which it answers; harmless when done twice or for an unknown device.
   */
  revoke(deviceId: string, signal: AbortSignal): Promise<string[]>;
  /** Drops what `revoke` kept; leaves credentials alone that are not revoked. */
  forget(deviceId: string, signal: AbortSignal): Promise<void>;
  /** What to check a login by; null when the device has no access. */
  findLogin(deviceId: string, clientId: string, signal: AbortSignal): Promise<StoredLogin | null>;
  /**
   * Records a client id durably, and drops the least useful ones beyond `maxKnownClientIds`.
   * False when epoch or token are no longer the device's: then nothing is recorded and the login must be refused.
   */
  recordClient(client: SeenClient, signal: AbortSignal): Promise<boolean>;
}
