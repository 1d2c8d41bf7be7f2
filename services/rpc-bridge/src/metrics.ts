import { metricsOn } from "@devmesh/service-kit/metrics";
import type { Registry } from "prom-client";

/** What the bridge counts. */
export type BridgeMetrics = ReturnType<typeof createBridgeMetrics>;

/** What each scrape reads. */
interface Measured {
  callsInFlight(): number;
  /** Messages that the broker keeps for the bridge. */
  backlog(): Promise<number>;
  /** Unix milliseconds; null without TLS or a connection. */
  certificateExpiresAt(): number | null;
}

/** Registers the bridge's metrics. */
export function createBridgeMetrics(registry: Registry, measured: Measured) {
  const { counter, measuredGauge } = metricsOn(registry);
  measuredGauge("devmesh_rpc_calls_in_flight", "Device calls that wait for an answer.", () =>
    measured.callsInFlight(),
  );
  measuredGauge(
    "devmesh_rpc_backlog_messages",
    "Shadow requests and events that are acknowledged to devices and not handled yet.",
    () => measured.backlog(),
  );
  measuredGauge(
    "devmesh_mqtt_certificate_expiry_timestamp_seconds",
    "When the certificate that the broker shows for MQTT expires; absent without TLS.",
    () => {
      const expiresAt = measured.certificateExpiresAt();
      return expiresAt === null ? null : expiresAt / 1_000;
    },
  );
  return {
    /** `unreadable`, or `unexpected`: late, repeated, or for another replica. */
    repliesIgnored: counter(
      "devmesh_rpc_replies_ignored_total",
      "Replies of devices that no call waits for.",
      "why",
    ),
    /** `shadowUpdate`, `shadowGet`, `event`; refused updates too, since they are answered. */
    messagesHandled: counter(
      "devmesh_device_messages_handled_total",
      "Shadow requests and events of devices that were handled.",
      "kind",
    ),
    /** `topic`, `not_json`, `too_large`, `too_many`, `overload`, `failed`. */
    messagesDropped: counter(
      "devmesh_device_messages_dropped_total",
      "Messages of devices that were given up.",
      "why",
    ),
    /** Messages for persistent sessions alone, and unreleased ones at QoS 2. */
    queuedMessagesDropped: counter(
      "devmesh_device_queued_messages_dropped_total",
      "Messages dropped that waited for kept MQTT sessions, because the broker's storage filled up.",
    ),
    /** `too_many` of a device, or `expired`. */
    sessionsEnded: counter(
      "devmesh_device_sessions_ended_total",
      "Kept MQTT sessions of devices that were ended.",
      "why",
    ),
    retainedMessagesCleared: counter(
      "devmesh_device_retained_messages_cleared_total",
      "Retained messages of devices cleared because they took too much room.",
    ),
    callEventsDropped: counter(
      "devmesh_rpc_call_events_dropped_total",
      "Calls that were not published as an event.",
    ),
  };
}
