/** A master or device key as it is stored, by the names of its columns. Times are Unix milliseconds. */
export interface StoredApiKey {
  /** Ascends in the order of creation, over several replicas as exactly as their clocks agree. */
  readonly id: string;
  /** SHA-256 of the secret; unique. */
  readonly digest: Uint8Array;
  /** The secret, encrypted for this row. */
  readonly sealed: Uint8Array;
  /** Null for a master key, and then `epoch` is too. */
  readonly device_id: string | null;
  /** Binds a device key to one issue of the device's credentials. */
  readonly epoch: string | null;
  readonly name: string | null;
  readonly created_at: number;
  readonly last_used: number | null;
  readonly expires_at: number | null;
}

/** Master and device keys. Needs unique keys and atomic writes of one document, no more (ADR 3). */
export interface ApiKeyStore {
  /** False, and nothing stored, when there is a key of that digest already. */
  insert(key: StoredApiKey, signal: AbortSignal): Promise<boolean>;
  /**
   * Stores a master key that never expires unless one is valid at `now`, and returns the oldest valid one. Of several
   * such calls at the same time one stores its key.
   */
  insertMasterIfNone(key: StoredApiKey, now: number, signal: AbortSignal): Promise<StoredApiKey>;
  /** The key of that id, expired or not. */
  find(id: string, signal: AbortSignal): Promise<StoredApiKey | null>;
  /** The key of that digest, expired or not. */
  findByDigest(digest: Uint8Array, signal: AbortSignal): Promise<StoredApiKey | null>;
  /** Keys in ascending order of id, after the id `after`, at most `limit`. */
  list(after: string | null, limit: number, signal: AbortSignal): Promise<StoredApiKey[]>;
  count(signal: AbortSignal): Promise<number>;
  /** Deletes a key, but never the last master key that is valid at `now`, however many calls there are at a time. */
  delete(id: string, now: number, signal: AbortSignal): Promise<"deleted" | "not_found" | "last_master_key">;
  /** Ids of all keys of a device, of any epoch. */
  listIdsOfDevice(deviceId: string, signal: AbortSignal): Promise<string[]>;
  /** Deletes keys without a check; for device keys. */
  deleteAll(ids: readonly string[], signal: AbortSignal): Promise<void>;
  /** Deletes device keys of another epoch than the device's credentials, which a crash leaves; returns how many. */
  deleteOrphans(signal: AbortSignal): Promise<number>;
  /** Sets the times of last use; unknown ids are ignored, a time never goes back. */
  recordUses(
    uses: readonly { readonly id: string; readonly at: number }[],
    signal: AbortSignal,
  ): Promise<void>;
}
