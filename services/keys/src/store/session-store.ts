/** A session as it is stored, by the names of its columns. Times are Unix milliseconds. */
export interface StoredSession {
  /** Ascends in the order of creation, over several replicas as exactly as their clocks agree. */
  readonly id: string;
  /** SHA-256 of its key, which is not stored; unique. */
  readonly digest: Uint8Array;
  readonly master_key_id: string;
  readonly name: string | null;
  readonly created_at: number;
  readonly last_used: number | null;
  /** Not after the end of the master key. */
  readonly expires_at: number;
}

/** Sessions of the dashboard. Needs unique keys and atomic writes of one document, no more (ADR 3). */
export interface SessionStore {
  insert(session: StoredSession, signal: AbortSignal): Promise<void>;
  /** The session of that digest, expired or not. */
  findByDigest(digest: Uint8Array, signal: AbortSignal): Promise<StoredSession | null>;
  /** All of them, expired ones included, in ascending order of id. The use cases bound their number. */
  list(signal: AbortSignal): Promise<StoredSession[]>;
  /** Deletes sessions; returns how many there were. */
  deleteAll(ids: readonly string[], signal: AbortSignal): Promise<number>;
  /** Sets the times of last use; unknown ids are ignored, a time never goes back. */
  recordUses(
    uses: readonly { readonly id: string; readonly at: number }[],
    signal: AbortSignal,
  ): Promise<void>;
}
