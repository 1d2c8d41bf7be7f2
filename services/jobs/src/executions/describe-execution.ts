import type { Execution } from "@devmesh/contracts/model/execution";
import type { StoredExecution } from "../store/execution-store.ts";

/** An execution as the API shows it. */
export function describeExecution(stored: StoredExecution): Execution {
  const {
    revision: _,
    due_at: __,
    not_before: ___,
    retry: ____,
    place: _____,
    ticket: ______,
    update: _______,
    from_webhook: ________,
    ...shown
  } = stored;
  return {
    ...shown,
    created_at: timestamp(stored.created_at),
    sent_at: stored.sent_at === null ? null : timestamp(stored.sent_at),
    ended_at: stored.ended_at === null ? null : timestamp(stored.ended_at),
    expires_at: timestamp(stored.expires_at),
  };
}

/** Unix milliseconds as the API writes them. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
