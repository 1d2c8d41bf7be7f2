import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export { Counter };

/** What the kit measures in every service. Services register their own metrics on `registry`. */
export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Gauges of prom-client named like counters; `nodejs_active_resources` and the others have the same content by type.
 */
const gaugesNamedLikeCounters = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

/** A registry with the kit's metrics and, if wanted, those of the process. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}) {
  const registry = new Registry();
  const registers = [registry];
  if (options.processMetrics === true) {
    collectDefaultMetrics({ register: registry });
    for (const name of gaugesNamedLikeCounters) registry.removeSingleMetric(name);
  }
  const counter = <L extends string = never>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name: `devmesh_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name: `devmesh_${name}`, help, labelNames, registers });
  return {
    registry,
    /** By `service`, `method` and `code`: `ok` or an error code. */
    callSeconds: new Histogram({
      name: "devmesh_call_duration_seconds",
      help: "Time to answer a call, by outcome.",
      labelNames: ["service", "method", "code"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
      registers,
    }),
    callsRunning: gauge("calls_running", "Calls being answered.", "service"),
    callRetries: counter(
      "call_retries_total",
      "Calls sent again because nobody was there to answer.",
      "service",
      "method",
    ),
    busConnected: gauge("bus_connected", "1 while connected to the broker.", "user"),
    busReconnects: counter("bus_reconnects_total", "Connections to the broker that replaced a lost one."),
    /** By `outcome`: `ok`, `failed`, and for live events `too_large`, `disconnected`, `congested`. */
    eventsPublished: counter("events_published_total", "Events published.", "name", "outcome"),
    /** By `outcome`: `ok`, `unreadable`, `failed`. */
    eventsHandled: counter("events_handled_total", "Events received.", "name", "outcome"),
    /** By `outcome`: `ok`, `failed`, `dead`. */
    jobAttempts: counter("job_attempts_total", "Attempts at queued jobs.", "queue", "outcome"),
    /** By `outcome`: `ok`, `failed`, `unreadable`. */
    deviceMessages: counter(
      "device_messages_total",
      "Messages of devices that were pulled.",
      "consumer",
      "outcome",
    ),
    /** By `outcome`: `allowed`, `denied`, `failed`. */
    deviceLogins: counter("device_logins_total", "Device logins decided.", "outcome"),
  };
}
