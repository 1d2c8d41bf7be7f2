/** When mails were sent, by window; kept so that limits hold over restarts. Times are Unix milliseconds. */
export interface MailSlotStore {
  /** Takes a slot of a window at `now` if fewer than `limit` were taken after `since`; atomic. */
  take(window: string, limit: number, since: number, now: number, signal: AbortSignal): Promise<boolean>;
  /** Gives one slot back that was taken at `takenAt`. */
  giveBack(window: string, takenAt: number, signal: AbortSignal): Promise<void>;
  /** Drops what was taken before that time. */
  prune(before: number, signal: AbortSignal): Promise<void>;
}
