import type { Metrics } from "@devmesh/service-kit/metrics";
import { Counter, Gauge } from "prom-client";

/** What is measured of the notification stream. */
export interface NotificationMetrics {
  /** Listeners now, by the kind of their key and the format. */
  readonly listeners: Gauge<"kind" | "format">;
  /** Frames given to listeners, by the kind of their key. */
  readonly frames: Counter<"kind">;
  /** Listeners closed because they read too slowly. */
  readonly slow: Counter;
  /** Times that a listener's past was read from the stream of events, and not from memory. */
  readonly replays: Counter;
}

/** Registers the metrics of the notification stream. */
export function createNotificationMetrics({ registry }: Metrics): NotificationMetrics {
  const registers = [registry];
  return {
    listeners: new Gauge({
      name: "devmesh_notify_listeners",
      help: "Listeners of the notification stream.",
      labelNames: ["kind", "format"],
      registers,
    }),
    frames: new Counter({
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
