import type { Metrics } from "@devmesh/service-kit/metrics";
import { Counter, Gauge } from "prom-client";

export type NotificationMetrics = ReturnType<typeof createNotificationMetrics>;

/** Registers the metrics of the notification stream. */
export function createNotificationMetrics({ registry }: Metrics) {
  const registers = [registry];
  return {
    listeners: new Gauge<"kind" | "format">({
      name: "devmesh_notify_listeners",
      help: "Listeners of the notification stream.",
      labelNames: ["kind", "format"],
      registers,
    }),
    frames: new Counter<"kind">({
      name: "devmesh_notify_frames_total",
      help: "Frames given to listeners.",
      labelNames: ["kind"],
      registers,
    }),
    slow: new Counter({
      name: "devmesh_notify_slow_readers_total",
      help: "Listeners closed because they read too slowly.",
      registers,
    }),
    replays: new Counter({
      name: "devmesh_notify_replays_total",
      help: "Times that a listener's past was read from the stream of events.",
      registers,
    }),
  };
}
