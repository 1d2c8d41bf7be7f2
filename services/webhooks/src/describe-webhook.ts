import type { Webhook } from "@devmesh/contracts/model/webhook";
import type { EventOutbox, FoundConsumer } from "@devmesh/service-kit/events/event-outbox";
import type { StoredWebhook } from "./store/webhook-store.ts";

/** A webhook as the API shows it. What the broker does not say is null. */
export async function describeWebhook(
  webhook: StoredWebhook,
  outbox: Pick<EventOutbox, "countLetters">,
  consumers: ReadonlyMap<string, FoundConsumer> | null,
): Promise<Webhook> {
  const { id, name, url, events, devices, labels, records, disabled_because, last_failure } = webhook;
  const consumer = consumers?.get(id);
  const [dead, oldest] = await Promise.all([
    outbox.countLetters(id).catch(() => null),
    consumer?.oldest().catch(() => null) ?? null,
  ]);
  return {
    id,
    name,
    url,
    events,
    devices,
    labels,
    records,
    enabled: disabled_because === null,
    disabled_because,
    created_at: isoTime(webhook.created_at),
    state: {
      waiting: consumers === null ? null : (consumer?.waiting ?? 0),
      dead,
      oldest: oldest === null ? null : oldest.toISOString(),
      failing_since: webhook.failing_since === null ? null : isoTime(webhook.failing_since),
      last_success_at: webhook.last_success_at === null ? null : isoTime(webhook.last_success_at),
      last_failure: last_failure && { ...last_failure, at: isoTime(last_failure.at) },
    },
  };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
