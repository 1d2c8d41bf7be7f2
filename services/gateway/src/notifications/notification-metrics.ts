import { type Metrics, metricsOn } from "@devmesh/service-kit/metrics";
import { streamFormats } from "./frame.ts";
import { listenerKinds } from "./listener.ts";

export type NotificationMetrics = ReturnType<typeof createNotificationMetrics>;

/** Registers the metrics of the notification stream. */
export function createNotificationMetrics({ registry }: Metrics) {
  const { counter, gauge } = metricsOn(registry);
  const listeners = gauge(
    "devmesh_notify_listeners",
    "Listeners of the notification stream.",
    "kind",
    "format",
  );
  // An autoscaler takes no replica away while it lacks a figure.
  for (const kind of listenerKinds) for (const format of streamFormats) listeners.set({ kind, format }, 0);
  return {
    listeners,
    frames: counter("devmesh_notify_frames_total", "Frames given to listeners.", "kind"),
    slow: counter("devmesh_notify_slow_readers_total", "Listeners closed because they read too slowly."),
    replays: counter(
      "devmesh_notify_replays_total",
      "Times that a listener's past was read from the stream of events.",
    ),
  };
}
