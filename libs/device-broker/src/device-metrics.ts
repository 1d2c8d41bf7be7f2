import { type Metrics, metricsOn } from "@devmesh/service-kit/metrics";

/** The counters of each process: both its connections count in one place. */
const counters = new WeakMap<Metrics, ReturnType<typeof createDeviceMetrics>>();

/** What a process measures of its devices. */
export function deviceMetrics(metrics: Metrics): ReturnType<typeof createDeviceMetrics> {
  const known = counters.get(metrics) ?? createDeviceMetrics(metrics);
  counters.set(metrics, known);
  return known;
}

function createDeviceMetrics({ registry }: Metrics) {
  const { counter } = metricsOn(registry);
  return {
    /** By `outcome`: `ok`, `failed`, `unreadable`. */
    messages: counter(
      "devmesh_device_messages_total",
      "Messages of devices that were pulled.",
      "consumer",
      "outcome",
    ),
    /** By `outcome`: `allowed`, `denied`, `failed`. */
    logins: counter("devmesh_device_logins_total", "Device logins decided.", "outcome"),
  };
}
