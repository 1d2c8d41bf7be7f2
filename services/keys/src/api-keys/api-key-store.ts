/** A master or device key as it is stored. Times are Unix milliseconds. */
export interface StoredApiKey {
  /** Ascends in the order of creation; of keys that several replicas make, as exactly as their clocks agree. */
  readonly id: string;
  /** SHA-256 of the secret; unique. */
  readonly digest: Uint8Array;
  /** The secret, sealed for this row. */
  readonly sealed: Uint8Array;
  /** Null for a master key. A device key is bound to one issue of the device's credentials by their `epoch`. */
  readonly device: { readonly id: string; readonly epoch: string } | null;
  readonly name: string | null;
  readonly createdAt: number;
  readonly lastUsed: number | null;
  readonly expiresAt: number | null;
}

/** When a key was last used. */
interface KeyUse {
  readonly id: string;
  readonly at: number;
}

/** How an attempt to delete a key ended. */
type KeyDeletion = "deleted" | "not_found" | "last_master_key";

/** Where master and device keys are kept. Asks of a store unique keys and atomic writes of one document, no more. */
export interface ApiKeyStore {
  /** Stores a new key; false, and nothing stored, when its digest is there already. */
  insert(key: StoredApiKey, signal: AbortSignal): Promise<boolean>;
  /**
   * Stores a master key that never expires unless one is valid at `now`; answers the oldest valid one after it. Of
   * several such calls at the same time one stores its key.
   */
  insertMasterIfNone(key: StoredApiKey, now: number, signal: AbortSignal): Promise<StoredApiKey>;
  /** The key of that digest, expired or not. */
  findByDigest(digest: Uint8Array, signal: AbortSignal): Promise<StoredApiKey | null>;
  /** Keys in ascending order of id, behind `after`, at most `limit`. */
  list(after: string | null, limit: number, signal: AbortSignal): Promise<StoredApiKey[]>;
  /**
   * Deletes a key, except a master key valid at `now` when no other is: of several such calls at the same time at
   * least one valid master key is left over. A store without transactions marks the key first, looks for a valid
   * unmarked one, and takes the mark back if there is none.
   */
  delete(id: string, now: number, signal: AbortSignal): Promise<KeyDeletion>;
  /** Ids of all keys of a device, of whatever epoch. */
  listIdsOfDevice(deviceId: string, signal: AbortSignal): Promise<string[]>;
  /** Deletes keys of these ids without a further look; for device keys. */
  deleteAll(ids: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * Deletes device keys whose epoch is not that of the device's credentials: what a crash left over. Answers how
   * many.
   */
  deleteOrphans(signal: AbortSignal): Promise<number>;
  /** Sets the times of last use; unknown ids are passed over, a time never goes back. */
  recordUses(uses: readonly KeyUse[], signal: AbortSignal): Promise<void>;
}
