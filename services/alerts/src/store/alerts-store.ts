import type { Leases } from "@devmesh/store/leases";
import type { MailSlotStore } from "@devmesh/store/mail-slots";
import type { AlertStore } from "./alert-store.ts";
import type { RuleStore } from "./rule-store.ts";

/** All that the service stores, in one database. */
export interface AlertsStore {
  readonly rules: RuleStore;
  readonly alerts: AlertStore;
  /** Tests of channels that were sent. */
  readonly testSlots: MailSlotStore;
  readonly leases: Leases;
  /** Resolves when the store can be read now. */
  ping(signal: AbortSignal): Promise<void>;
  /** No call may follow. */
  close(): Promise<void>;
}
