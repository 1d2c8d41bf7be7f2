import type { Webhook } from "@devmesh/contracts/model/webhook";
import type { Leases } from "@devmesh/store/leases";

/** A webhook as it is stored. Times are Unix milliseconds. It holds no secret. */
export interface StoredWebhook
  extends Pick<
    Webhook,
    "id" | "name" | "url" | "events" | "devices" | "labels" | "records" | "disabled_because"
  > {
  /** 1 at the creation; each change increments it. */
  readonly revision: number;
  readonly created_at: number;
  /** Names the consumer of its events: another one begins with what is published from then on. */
  readonly run: number;
  /** When somebody began to make the consumer of the run. */
  readonly run_at: number;
  /** Since when events were dropped as the run began; null where it begins without a gap. */
  readonly gap_from: number | null;
  /** Counts changes of what is asked for. */
  readonly edition: number;
  /** Generation of the secret, and when it began. */
  readonly generation: number;
  readonly generation_at: number;
  /** First failure after the last success, and the requests that failed since. */
  readonly failing_since: number | null;
  readonly failed_attempts: number;
  readonly last_success_at: number | null;
  readonly last_failure: {
    readonly at: number;
    readonly status: number | null;
    readonly error: string;
  } | null;
  /** Cursor of the last record that was delivered; null before the first. */
  readonly position: string | null;
  /** How many records a batch has that was sent and not answered yet, so that a repetition is the same. */
  readonly batch: { readonly count: number } | null;
}

/** Webhooks as documents. */
export interface WebhookStore {
  /** Stores a new webhook, unless so many exist. */
  insert(webhook: StoredWebhook, most: number, signal: AbortSignal): Promise<boolean>;
  find(id: string, signal: AbortSignal): Promise<StoredWebhook | null>;
  /** All, the oldest first. */
  list(signal: AbortSignal): Promise<StoredWebhook[]>;
  /** Replaces a webhook whose stored revision is one less; false: there is none. */
  change(webhook: StoredWebhook, signal: AbortSignal): Promise<boolean>;
  /** Whether there was one. */
  remove(id: string, signal: AbortSignal): Promise<boolean>;
  /** Corrects what the limit counts after a death of a replica; to be called about once a minute. */
  correctCounts(signal: AbortSignal): Promise<void>;
  readonly leases: Leases;
  ping(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
