import { Counter, Gauge, type Registry } from "prom-client";

/** What the bridge counts besides what the kit measures for every service. */
export interface BridgeMetrics {
  /** Replies that no call waits for: `unreadable` ones, and `unexpected` ones (late, twice, or of another replica). */
  readonly repliesIgnored: Counter<"why">;
  /** Device messages that were given up: `topic`, `not_json`, `too_large`, `too_many`, `overload`, `failed`. */
  readonly messagesDropped: Counter<"why">;
  /**
   * Messages that waited for kept sessions alone, or to be released at QoS 2, and were dropped because the broker's
   * storage filled up.
   */
  readonly queuedMessagesDropped: Counter;
  /** Kept sessions that were ended: `too_many` of a device, or `expired`. */
  readonly sessionsEnded: Counter<"why">;
  /** Retained messages that a device had published and that were cleared because all of them took too much room. */
  readonly retainedMessagesCleared: Counter;
  /** Calls whose `rpc.in` was not told, since too many of those were under way. */
  readonly callEventsDropped: Counter;
}

/** Registers the bridge's metrics; `callsInFlight` is asked at each scrape. */
export function createBridgeMetrics(registry: Registry, callsInFlight: () => number): BridgeMetrics {
  const registers = [registry];
  new Gauge({
    name: "devmesh_rpc_calls_in_flight",
    help: "Device calls that wait for an answer.",
    registers,
    collect() {
      this.set(callsInFlight());
    },
  });
  return {
    repliesIgnored: new Counter({
      name: "devmesh_rpc_replies_ignored_total",
      help: "Replies of devices that no call waits for.",
      labelNames: ["why"],
      registers,
    }),
    messagesDropped: new Counter({
      name: "devmesh_device_messages_dropped_total",
      help: "Messages of devices that were given up.",
      labelNames: ["why"],
      registers,
    }),
    queuedMessagesDropped: new Counter({
      name: "devmesh_device_queued_messages_dropped_total",
      help: "Messages dropped that waited for kept MQTT sessions, because the broker's storage filled up.",
      registers,
    }),
    sessionsEnded: new Counter({
      name: "devmesh_device_sessions_ended_total",
      help: "Kept MQTT sessions of devices that were ended.",
      labelNames: ["why"],
      registers,
    }),
    retainedMessagesCleared: new Counter({
      name: "devmesh_device_retained_messages_cleared_total",
      help: "Retained messages of devices cleared because they took too much room.",
      registers,
    }),
    callEventsDropped: new Counter({
      name: "devmesh_rpc_call_events_dropped_total",
      help: "Calls that were not told as an event.",
      registers,
    }),
  };
}
