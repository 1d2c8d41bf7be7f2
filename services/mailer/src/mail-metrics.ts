import type { QueueDeclaration } from "@devmesh/contracts/contract";
import type { Bus } from "@devmesh/service-kit/bus";
import { metricsOn } from "@devmesh/service-kit/metrics";
import type { QueueAdmin } from "@devmesh/service-kit/queue/admin";
import { Gauge } from "prom-client";

/** Counters besides the attempts at jobs, which the kit counts. */
export type MailMetrics = ReturnType<typeof createMailMetrics>;

/** Counts the mails of all queues. */
export type CountMails = QueueAdmin<QueueDeclaration>["count"];

/** Registers the metrics. Each scrape asks the broker for the lengths of the queues. */
export function createMailMetrics(bus: Bus, count: CountMails) {
  const { registry } = bus.metrics;
  new Gauge({
    name: "devmesh_mails",
    help: "Mails in the broker: waiting to be sent, or dead after the last attempt.",
    labelNames: ["state"],
    registers: [registry],
    async collect() {
      this.reset();
      // Absent is unknown; an old value would be wrong, and a wait would delay all other metrics.
      if (!bus.connected) return;
      try {
        const { pending, dead } = await count();
        this.set({ state: "waiting" }, pending);
        this.set({ state: "dead" }, dead);
      } catch (error) {
        bus.log.warn({ err: error }, "the mails in the queue cannot be counted");
      }
    },
  });
  return { sent: metricsOn(registry).counter("devmesh_mails_sent_total", "Mails that were accepted.") };
}
