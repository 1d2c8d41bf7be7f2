import type { Leases } from "@devmesh/store/leases";
import type { ExecutionStore } from "./execution-store.ts";
import type { FirmwareStore } from "./firmware-store.ts";

/** All that the service stores, in one database. */
export interface JobsStore {
  readonly executions: ExecutionStore;
  readonly firmware: FirmwareStore;
  readonly leases: Leases;
  /** Resolves when the store can be read now. */
  ping(signal: AbortSignal): Promise<void>;
  /** No call may follow. */
  close(): Promise<void>;
}
