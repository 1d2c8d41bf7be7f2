import type { StoredWebhook } from "../src/store/webhook-store.ts";

/** A webhook as it is stored, with defaults for what a test does not set. */
export function storedWebhook(more: Partial<StoredWebhook> & Pick<StoredWebhook, "id">): StoredWebhook {
  return {
    name: null,
    url: "https://a.example/",
    events: ["offline"],
    devices: null,
    labels: null,
    records: { batch: 1, wait_ms: 0 },
    disabled_because: null,
    revision: 1,
    created_at: 0,
    run: 1,
    run_at: 0,
    gap_from: null,
    edition: 1,
    generation: 1,
    generation_at: 0,
    failing_since: null,
    failed_attempts: 0,
    last_success_at: null,
    last_failure: null,
    position: null,
    batch: null,
    ...more,
  };
}
