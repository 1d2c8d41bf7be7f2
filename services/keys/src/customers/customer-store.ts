/** A customer as it is stored. Times are Unix milliseconds. */
export interface StoredCustomer {
  /** Ascends in the order of creation, over several replicas as exactly as their clocks agree. */
  readonly id: string;
  /** Unique. */
  readonly email: string;
  /** SHA-256 of the access token; unique. */
  readonly tokenDigest: Uint8Array;
  /** The access token, sealed for this row. */
  readonly sealedToken: Uint8Array;
  /** Compact JSON: a store that knows documents would change the meaning of some member names. */
  readonly meta: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly confirmedAt: number | null;
  /** When the last invitation was asked for. */
  readonly invitedAt: number;
}

/** Where customers are kept. Asks of a store unique keys and atomic writes of one document, no more. */
export interface CustomerStore {
  /** Stores a new customer; false, and nothing stored, when the address has one already. */
  insert(customer: StoredCustomer, signal: AbortSignal): Promise<boolean>;
  find(id: string, signal: AbortSignal): Promise<StoredCustomer | null>;
  findByTokenDigest(digest: Uint8Array, signal: AbortSignal): Promise<StoredCustomer | null>;
  /** Notes another invitation of the address; null when it has no customer. */
  recordInvitation(email: string, at: number, signal: AbortSignal): Promise<StoredCustomer | null>;
  /** Whether the address has a customer who confirmed it. */
  isConfirmed(email: string, signal: AbortSignal): Promise<boolean>;
  /** Sets the time of confirmation if there is none; false when there is no such customer. */
  confirm(id: string, at: number, signal: AbortSignal): Promise<boolean>;
  /** Replaces `meta`; answers the customer after it, null when there is none. */
  replaceMeta(id: string, meta: string, at: number, signal: AbortSignal): Promise<StoredCustomer | null>;
  /** Customers in ascending order of id, behind `after`, at most `limit`. */
  list(after: string | null, limit: number, signal: AbortSignal): Promise<StoredCustomer[]>;
  delete(id: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Deletes one customer that was never confirmed and last invited at that time or before; answers its id, null when
   * there is none.
   */
  deleteUnconfirmed(invitedUntil: number, signal: AbortSignal): Promise<string | null>;
  /** The same for the customer of one address. */
  deleteUnconfirmedOf(email: string, invitedUntil: number, signal: AbortSignal): Promise<string | null>;
}
