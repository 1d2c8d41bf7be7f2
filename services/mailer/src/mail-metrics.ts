import type { Bus } from "@devmesh/service-kit/bus";
import type { QueueAdmin } from "@devmesh/service-kit/queue-admin";
import { Counter, Gauge } from "prom-client";
import type { MailQueue } from "./mail-deliveries.ts";

/** What the mailer counts besides the attempts at jobs, which the kit counts by outcome. */
export interface MailMetrics {
  /** Mails that the other side has taken; those of customers who were gone are not among them. */
  readonly sent: Counter;
}

/** Registers the mailer's metrics; how much waits and how much is given up is asked of the broker at each scrape. */
export function createMailMetrics(bus: Bus, queue: QueueAdmin<MailQueue>): MailMetrics {
  const registers = [bus.metrics.registry];
  new Gauge({
    name: "devmesh_mails",
    help: "Mails kept by the broker: waiting to be sent, or dead, that is given up.",
    labelNames: ["state"],
    registers,
    async collect() {
      this.reset();
      // Absent values say that nobody knows; old ones would lie, and a wait would hold up all other metrics.
      if (!bus.connected) return;
      try {
        const { pending, dead } = await queue.count();
        this.set({ state: "waiting" }, pending);
        this.set({ state: "dead" }, dead);
      } catch (error) {
        bus.log.warn({ err: error }, "the mails in the queue cannot be counted");
      }
    },
  });
  return { sent: new Counter({ name: "devmesh_mails_sent_total", help: "Mails handed over.", registers }) };
}
