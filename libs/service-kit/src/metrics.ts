import { totalmem } from "node:os";
import { performance } from "node:perf_hooks";
import { Counter, collectDefaultMetrics, Gauge, Histogram, type LabelValues, Registry } from "prom-client";

/** Seconds: from calls within one machine up to the longest deadline. */
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

/** Functions that register a metric each; labels follow its help. */
export function metricsOn(registry: Registry) {
  const registers = [registry];
  return {
    counter: <L extends string = never>(name: string, help: string, ...labelNames: L[]) =>
      new Counter({ name, help, labelNames, registers }),
    gauge: <L extends string = never>(name: string, help: string, ...labelNames: L[]) =>
      new Gauge({ name, help, labelNames, registers }),
    /** Read at each scrape; absent while `read` gives null or fails, since an old value would be wrong. */
    measuredGauge(name: string, help: string, read: () => number | null | Promise<number | null>): void {
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const value = await (async () => read())().catch(() => null);
          if (value === null) this.remove();
          else this.set(value);
        },
      });
    },
    /** Of durations in seconds. */
    histogram: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Histogram({ name, help, labelNames, registers, buckets: durationBuckets }),
  };
}

/** The sum of a counter over the labels that `counts` accepts. */
export async function sumOf<L extends string>(
  counter: Counter<L>,
  counts: (labels: LabelValues<L>) => boolean = () => true,
): Promise<number> {
  const { values } = await counter.get();
  return values.filter(({ labels }) => counts(labels)).reduce((sum, { value }) => sum + value, 0);
}

/** What the kit measures in every service. Services register their own metrics on `registry`. */
export type Metrics = ReturnType<typeof createMetrics>;

/**
 * How often the lag of the event loop is measured, in milliseconds, which is also the least lag that is reported. The
 * default of 10 wakes each process 100 times a second, which is most of what an idle one takes of the processor.
 */
const lagEveryMs = 100;

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
  const { counter, gauge, histogram } = metricsOn(registry);
  if (options.processMetrics === true) {
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: lagEveryMs });
    for (const name of gaugesNamedLikeCounters) registry.removeSingleMetric(name);
    measureLoad(registry);
  }
  return {
    registry,
    /** By `service`, `method` and `code`: `ok` or an error code. */
    callSeconds: histogram(
      "devmesh_call_duration_seconds",
      "Time to answer a call, by outcome.",
      "service",
      "method",
      "code",
    ),
    callsRunning: gauge("devmesh_calls_running", "Calls being answered.", "service"),
    callRetries: counter(
      "devmesh_call_retries_total",
      "Calls sent again because nobody was there to answer.",
      "service",
      "method",
    ),
    busConnected: gauge("devmesh_bus_connected", "1 while connected to the broker.", "user"),
    busReconnects: counter(
      "devmesh_bus_reconnects_total",
      "Connections to the broker that replaced a lost one.",
    ),
    /** By `outcome`: that of a publication (`PublicationOutcome`). */
    eventsPublished: counter("devmesh_events_published_total", "Events published.", "name", "outcome"),
    /** By `outcome`: `ok`, `unreadable`, `failed`. */
    eventsHandled: counter("devmesh_events_handled_total", "Events received.", "name", "outcome"),
    /** By `outcome`: `ok`, `failed`, `dead`. */
    jobAttempts: counter("devmesh_job_attempts_total", "Attempts at queued jobs.", "queue", "outcome"),
  };
}

/** Measures how near the process is to its limits, besides what prom-client measures. */
function measureLoad(registry: Registry): void {
  new Counter({
    name: "devmesh_event_loop_active_seconds_total",
    help: "Time in which the event loop did not wait for events; a rate of 1 is a full process.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(performance.eventLoopUtilization().active / 1_000);
    },
  });
  metricsOn(registry).measuredGauge(
    "devmesh_memory_limit_bytes",
    "Memory that the process may use; absent where nothing but the machine limits it.",
    () => {
      const limit = process.constrainedMemory();
      return limit > 0 && limit < totalmem() ? limit : null;
    },
  );
}
