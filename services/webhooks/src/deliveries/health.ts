import type { Outcome } from "../requests/sender.ts";
import { changeStored } from "../store/change-stored.ts";
import type { StoredWebhook, WebhookStore } from "../store/webhook-store.ts";
import { failingLimits } from "./schedule.ts";

interface Notes {
  succeededAt: number | null;
  failures: number;
  failedAt: number | null;
  failure: StoredWebhook["last_failure"];
}

export interface HealthOptions {
  readonly store: WebhookStore;
  /** Is given each webhook that was disabled. */
  readonly onDisabled: (webhook: StoredWebhook) => Promise<void>;
}

/** What became of requests, collected in memory and stored together, since there may be many a second. */
export class Health {
  readonly #options: HealthOptions;
  readonly #notes = new Map<string, Notes>();

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  note(id: string, { status, error }: Outcome, at: number): void {
    const notes = this.#notes.get(id) ?? { succeededAt: null, failures: 0, failedAt: null, failure: null };
    this.#notes.set(id, notes);
    if (error === null) {
      Object.assign(notes, { succeededAt: at, failures: 0, failedAt: null });
      return;
    }
    notes.failures++;
    notes.failedAt ??= at;
    notes.failure = { at, status, error };
  }

  /** Stores what was noted, and disables what has failed for too long. What a crash loses, later requests note. */
  async flush(now: number, signal: AbortSignal): Promise<void> {
    for (const [id, notes] of [...this.#notes]) {
      this.#notes.delete(id);
      const changed = await changeStored(
        this.#options.store,
        id,
        (webhook) => merged(webhook, notes, now),
        signal,
      );
      if (changed?.disabled_because === "failing") await this.#options.onDisabled(changed);
    }
  }
}

function merged(webhook: StoredWebhook, notes: Notes, now: number): StoredWebhook {
  const { succeededAt, failures, failedAt, failure } = notes;
  const failed = (succeededAt === null ? webhook.failed_attempts : 0) + failures;
  const since = succeededAt === null ? (webhook.failing_since ?? failedAt) : failedAt;
  const isFailing =
    webhook.disabled_because === null &&
    since !== null &&
    now - since >= failingLimits.ms &&
    failed >= failingLimits.attempts;
  return {
    ...webhook,
    failed_attempts: failed,
    failing_since: since,
    last_success_at: succeededAt ?? webhook.last_success_at,
    last_failure: failure ?? webhook.last_failure,
    ...(isFailing && { disabled_because: "failing" as const }),
  };
}
