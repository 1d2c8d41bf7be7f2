/** Leases by name: which of several holders may do what one alone must do. */
export interface Leases {
  /** Takes or renews a lease for `forMs` by the store's clock; false: another holder has it. */
  lease(name: string, holder: string, forMs: number, signal: AbortSignal): Promise<boolean>;
  /** Gives a lease up, if `holder` has it. */
  release(name: string, holder: string, signal: AbortSignal): Promise<void>;
}
