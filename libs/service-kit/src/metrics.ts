import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export { Counter };

/** What the kit measures in every service, in Prometheus terms. Services register their own on `registry`. */
export interface Metrics {
  readonly registry: Registry;
  /** Seconds per answered call, by `service`, `method` and `code` (`ok` or one of the nine). */
  readonly callSeconds: Histogram<"service" | "method" | "code">;
  /** Calls being answered now, by `service`. */
  readonly callsRunning: Gauge<"service">;
  /** Calls sent again after `unavailable`, by `service` and `method`. */
  readonly callRetries: Counter<"service" | "method">;
  /** 1 while the connection of that broker user is up. */
  readonly busConnected: Gauge<"user">;
  readonly busReconnects: Counter;
  /**
   * Published events, by `name` and `outcome` (`ok`, `failed`, and for live ones `too_large`, `disconnected`,
   * `congested`).
   */
  readonly eventsPublished: Counter<"name" | "outcome">;
  /** Received events, by `name` and `outcome` (`ok`, `unreadable`, `failed`). */
  readonly eventsHandled: Counter<"name" | "outcome">;
  /** Attempts at queued jobs, by `queue` and `outcome` (`ok`, `failed`, `dead`). */
  readonly jobAttempts: Counter<"queue" | "outcome">;
  /** Device messages pulled, by `consumer` and `outcome` (`ok`, `failed`, `unreadable`). */
  readonly deviceMessages: Counter<"consumer" | "outcome">;
  /** Logins decided, by `outcome` (`allowed`, `denied`, `failed`). */
  readonly deviceLogins: Counter<"outcome">;
}

/**
 * Gauges of prom-client named like counters; `nodejs_active_resources` and the others have the same content by type.
 */
const gaugesNamedLikeCounters = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

/** A registry with the kit's metrics and, if wanted, those of the process. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (options.processMetrics === true) {
    collectDefaultMetrics({ register: registry });
    for (const name of gaugesNamedLikeCounters) registry.removeSingleMetric(name);
  }
  return {
    registry,
    callSeconds: new Histogram({
      name: "devmesh_call_duration_seconds",
      help: "Time to answer a call, by outcome.",
      labelNames: ["service", "method", "code"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
      registers,
    }),
    callsRunning: new Gauge({
      name: "devmesh_calls_running",
      help: "Calls being answered.",
      labelNames: ["service"],
      registers,
    }),
    callRetries: new Counter({
      name: "devmesh_call_retries_total",
      help: "Calls sent again because nobody was there to answer.",
      labelNames: ["service", "method"],
      registers,
    }),
    busConnected: new Gauge({
      name: "devmesh_bus_connected",
      help: "1 while connected to the broker.",
      labelNames: ["user"],
      registers,
    }),
    busReconnects: new Counter({
      name: "devmesh_bus_reconnects_total",
      help: "Connections to the broker that replaced a lost one.",
      registers,
    }),
    eventsPublished: new Counter({
      name: "devmesh_events_published_total",
      help: "Events told.",
      labelNames: ["name", "outcome"],
      registers,
    }),
    eventsHandled: new Counter({
      name: "devmesh_events_handled_total",
      help: "Events heard.",
      labelNames: ["name", "outcome"],
      registers,
    }),
    jobAttempts: new Counter({
      name: "devmesh_job_attempts_total",
      help: "Attempts at queued jobs.",
      labelNames: ["queue", "outcome"],
      registers,
    }),
    deviceMessages: new Counter({
      name: "devmesh_device_messages_total",
      help: "Messages of devices that were pulled.",
      labelNames: ["consumer", "outcome"],
      registers,
    }),
    deviceLogins: new Counter({
      name: "devmesh_device_logins_total",
      help: "Device logins decided.",
      labelNames: ["outcome"],
      registers,
    }),
  };
}
