import { type Metrics, metricsOn } from "@devmesh/service-kit/metrics";

export type NotificationMetrics = ReturnType<typeof createNotificationMetrics>;

/** Registers the metrics of the notification stream. */
export function createNotificationMetrics({ registry }: Metrics) {
  const { counter, gauge } = metricsOn(registry);
  return {
    listeners: gauge("devmesh_notify_listeners", "Listeners of the notification stream.", "kind", "format"),
    frames: counter("devmesh_notify_frames_total", "Frames given to listeners.", "kind"),
    slow: counter("devmesh_notify_slow_readers_total", "Listeners closed because they read too slowly."),
    replays: counter(
      "devmesh_notify_replays_total",
      "Times that a listener's past was read from the stream of events.",
    ),
  };
}
