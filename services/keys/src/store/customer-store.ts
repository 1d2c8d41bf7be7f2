/** A customer as it is stored, by the names of its columns. Times are Unix milliseconds. */
export interface StoredCustomer {
  /** Ascends in the order of creation, over several replicas as exactly as their clocks agree. */
  readonly id: string;
  /** Unique. */
  readonly email: string;
  /** SHA-256 of the access token; unique. */
  readonly token_digest: Uint8Array;
  /** The access token, encrypted for this row. */
  readonly token_sealed: Uint8Array;
  /** Compact JSON: a store of documents would change the meaning of some member names. */
  readonly meta: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly confirmed_at: number | null;
  /** When the last invitation was requested. */
  readonly invited_at: number;
}

/** Customers. Needs unique keys and atomic writes of one document, no more (ADR 3). */
export interface CustomerStore {
  /** False, and nothing stored, when the address has a customer already. */
  insert(customer: StoredCustomer, signal: AbortSignal): Promise<boolean>;
  find(id: string, signal: AbortSignal): Promise<StoredCustomer | null>;
  findByTokenDigest(digest: Uint8Array, signal: AbortSignal): Promise<StoredCustomer | null>;
  /** Sets `invited_at`; null when the address has no customer. */
  recordInvitation(email: string, at: number, signal: AbortSignal): Promise<StoredCustomer | null>;
  isConfirmed(email: string, signal: AbortSignal): Promise<boolean>;
  /** Sets `confirmed_at` if it is null; false when there is no such customer. */
  confirm(id: string, at: number, signal: AbortSignal): Promise<boolean>;
  /** Returns the changed customer, null when there is none. */
  replaceMeta(id: string, meta: string, at: number, signal: AbortSignal): Promise<StoredCustomer | null>;
  /** Customers in ascending order of id, after the id `after`, at most `limit`. */
  list(after: string | null, limit: number, signal: AbortSignal): Promise<StoredCustomer[]>;
  /** Number of customers, without those that never confirmed and were last invited at `invitedUntil` or before. */
  count(invitedUntil: number, signal: AbortSignal): Promise<number>;
  delete(id: string, signal: AbortSignal): Promise<boolean>;
  /** Deletes one customer that never confirmed and was last invited at `invitedUntil` or before; returns its id. */
  deleteUnconfirmed(invitedUntil: number, signal: AbortSignal): Promise<string | null>;
  /** Of the customer of one address. */
  deleteUnconfirmedOf(email: string, invitedUntil: number, signal: AbortSignal): Promise<string | null>;
}
