import type { MailSlotStore } from "@devmesh/store/mail-slots";
import type { ApiKeyStore } from "./api-key-store.ts";
import type { CredentialStore } from "./credential-store.ts";
import type { CustomerStore } from "./customer-store.ts";
import type { SessionStore } from "./session-store.ts";

/** The store of this service. */
export interface KeyStore {
  readonly apiKeys: ApiKeyStore;
  readonly credentials: CredentialStore;
  readonly sessions: SessionStore;
  readonly customers: CustomerStore;
  readonly mailSlots: MailSlotStore;
  /** Stores the value under a name that has none; returns the stored one. */
  putSettingIfAbsent(name: string, value: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
  /** Resolves when the store can be read. */
  ping(signal: AbortSignal): Promise<void>;
  /** No call may follow. */
  close(): Promise<void>;
}
