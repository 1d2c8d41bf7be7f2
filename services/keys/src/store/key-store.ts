import type { ApiKeyStore } from "../api-keys/api-key-store.ts";
import type { CredentialStore } from "../credentials/credential-store.ts";
import type { CustomerStore } from "../customers/customer-store.ts";
import type { MailSlotStore } from "../customers/mail-slot-store.ts";

/** All that this service keeps. */
export interface KeyStore {
  readonly apiKeys: ApiKeyStore;
  readonly credentials: CredentialStore;
  readonly customers: CustomerStore;
  readonly mailSlots: MailSlotStore;
  /** Stores the value under a name that has none; answers the one that stands after it. */
  putSettingIfAbsent(name: string, value: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
  /** Resolves when the store can be read now. */
  ping(signal: AbortSignal): Promise<void>;
  /** Releases the store; no call may follow. */
  close(): Promise<void>;
}
