import type { EventOutbox } from "@devmesh/service-kit/events/event-outbox";
import { metricsOn } from "@devmesh/service-kit/metrics";
import { Gauge, type Registry } from "prom-client";
import type { WebhookStore } from "./store/webhook-store.ts";

/** What the service counts. */
export type WebhooksMetrics = ReturnType<typeof createWebhooksMetrics>;

const scrapeMs = 1_000;

/** Registers the metrics. A scrape asks the broker and the store; what they do not say is absent. */
export function createWebhooksMetrics(
  registry: Registry,
  outbox: Pick<EventOutbox, "consumers">,
  store: Pick<WebhookStore, "list">,
) {
  const { counter, histogram, measuredGauge } = metricsOn(registry);
  const oldest = new Gauge({
    name: "devmesh_webhook_oldest_seconds",
    help: "Age of the oldest event that waits, by webhook.",
    labelNames: ["webhook"],
    registers: [registry],
  });
  new Gauge({
    name: "devmesh_webhook_waiting",
    help: "Events that wait, by webhook.",
    labelNames: ["webhook"],
    registers: [registry],
    async collect() {
      this.reset();
      oldest.reset();
      for (const [webhook, consumer] of await outbox.consumers().catch(() => [])) {
        this.set({ webhook }, consumer.waiting);
        const since = await consumer.oldest().catch(() => null);
        if (since !== null) oldest.set({ webhook }, (Date.now() - since.getTime()) / 1_000);
      }
    },
  });
  measuredGauge("devmesh_webhooks_disabled", "Webhooks that failed or whose receiver is gone.", async () => {
    const webhooks = await store.list(AbortSignal.timeout(scrapeMs));
    return webhooks.filter(({ disabled_because: why }) => why !== null && why !== "by_hand").length;
  });
  return {
    attempts: counter("devmesh_webhook_attempts_total", "Requests to receivers.", "outcome"),
    dead: counter("devmesh_webhook_dead_total", "Deliveries that were given up."),
    cut: counter("devmesh_webhook_cut_total", "Times that a webhook lost what waited for it."),
    delaySeconds: histogram("devmesh_webhook_delay_seconds", "Time from an event to the receiver's answer."),
  };
}
