import type { Throttling } from "@devmesh/contracts/model/notification";
import type {
  DeviceConnectionEvent,
  DeviceConnections,
  OpenDeviceConnection,
} from "@devmesh/device-broker/connections";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { metricsOn } from "@devmesh/service-kit/metrics";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { Registry } from "prom-client";
import type { z } from "zod";
import type { Background } from "../background.ts";
import type { BrokerConnections } from "../connections/broker-connections.ts";
import type { DeviceEventPublisher } from "../device-events.ts";
import { type Excess, type TrafficLimits, TrafficMeter } from "./traffic-meter.ts";

/** Options of the throttle. */
export interface DeviceThrottleOptions {
  readonly connections: Pick<BrokerConnections, "list" | "listBusiest" | "close">;
  readonly background: Background;
  readonly clock: Clock;
  readonly events: Pick<DeviceEventPublisher, "throttled">;
  readonly limits: TrafficLimits;
  readonly registry: Registry;
  readonly log: Logger;
}

/** Meters what devices send, and throttles those that send too much. */
export interface DeviceThrottle {
  /** Disconnects a device that exceeds a limit and refuses its logins for a while. Returns at once. */
  throttle(deviceId: string, why: z.infer<typeof Throttling>["why"]): void;
  /** Takes a listing of all connections that was asked for at `askedMs` (monotonic). Metering begins with the first. */
  listed(listing: DeviceConnections, askedMs: number): void;
  /** Takes a connection that ended. */
  disconnected(connection: DeviceConnectionEvent): void;
}

/** How long logins are refused, in milliseconds: doubled each time, reset after an hour without excess. */
const refusal = { firstMs: 10_000, longestMs: 600_000, forgottenAfterMs: 3_600_000 } as const;

/** Devices whose last refusal is remembered; beyond it the oldest refusal is forgotten. */
const maxRemembered = 10_000;

/**
 * Interval of listings of the busiest connections, in milliseconds. It grows with all connections, since nats-server
 * takes some 3 µs for each to find the busiest.
 */
const listEvery = { leastMs: 200, msPerConnection: 0.05 } as const;

const callTimeoutMs = 10_000;

/** Milliseconds after which connections are closed again: a login that was being checked may succeed. */
const closeAgainAfterMs = 2_000;

/** Runs until the background ends. */
export function createDeviceThrottle(options: DeviceThrottleOptions): DeviceThrottle {
  const { connections, events, limits, registry, background, clock, log } = options;
  const refused = new Map<string, { readonly ms: number; readonly untilMs: number }>();
  const count = metricsOn(registry).counter(
    "devmesh_devices_throttled_total",
    "Times that a device was kept out of the broker for a while.",
    "why",
  );

  const meter = new TrafficMeter(limits);
  /** How many the last listing of all connections had; null before the first. */
  let all: { readonly servers: number; readonly connections: number } | null = null;

  /** Null while the device is refused already. */
  function nextRefusal(deviceId: string): number | null {
    const now = clock.monotonicMs();
    const last = refused.get(deviceId);
    if (last !== undefined && now < last.untilMs) return null;
    const remembered = last !== undefined && now - last.untilMs < refusal.forgottenAfterMs;
    const ms = remembered ? Math.min(2 * last.ms, refusal.longestMs) : refusal.firstMs;
    setNewest(refused, deviceId, { ms, untilMs: now + ms }, maxRemembered);
    return ms;
  }

  const close = (deviceId: string) =>
    background.retry("closing the connections of a throttled device", callTimeoutMs, async (call) => {
      const listed = await connections.list(call, deviceId);
      // Unlike a takeover this keeps the sessions of the device and their queues.
      await Promise.all(listed.connections.map((connection) => connections.close(connection, call)));
    });

  function throttle(
    deviceId: string,
    why: z.infer<typeof Throttling>["why"],
    known: readonly OpenDeviceConnection[] = [],
  ): void {
    const refusedMs = nextRefusal(deviceId);
    if (refusedMs === null) return;
    count.inc({ why });
    log.warn({ device_id: deviceId, why, refused_ms: refusedMs }, "a device is kept out of the broker");
    // At once: publishing is slow during a flood.
    background.run("closing the connections of a throttled device", async () => {
      using call = createCallContext({ timeoutMs: callTimeoutMs, signal: background.signal, clock });
      const open =
        known.length > 0 ? known : (await connections.list(call, deviceId, all?.servers)).connections;
      await Promise.all(open.map((connection) => connections.close(connection, call)));
    });
    background.run("throttling a device", async () => {
      // Published first, so that `keys` refuses the device when it reconnects.
      await background.retry("publishing that a device is throttled", callTimeoutMs, (call) =>
        events.throttled(deviceId, { why, refused_ms: refusedMs }, call),
      );
      await close(deviceId);
      await clock.sleep(closeAgainAfterMs, background.signal);
      await close(deviceId);
    });
  }

  function throttleAll(excesses: readonly Excess[], open: readonly OpenDeviceConnection[]): void {
    for (const { deviceId, why } of excesses)
      throttle(
        deviceId,
        why,
        open.filter((connection) => connection.deviceId === deviceId),
      );
  }

  async function listBusiest(): Promise<void> {
    const askedMs = clock.monotonicMs();
    const busiest = await connections.listBusiest({
      limit: meter.pageSize,
      servers: all?.servers ?? 0,
    });
    throttleAll(meter.takeBusiest(busiest, askedMs, clock.monotonicMs()), busiest.connections);
  }

  return {
    throttle: (deviceId, why) => throttle(deviceId, why),
    listed(listing, askedMs) {
      throttleAll(meter.takeAll(listing, askedMs), listing.connections);
      const isFirst = all === null;
      all = { servers: listing.servers.size, connections: listing.connections.length };
      if (!isFirst) return;
      background.run("metering what devices send", async () => {
        for (;;) {
          await background.retry("listing what devices sent", callTimeoutMs, listBusiest);
          const everyMs = (all?.connections ?? 0) * listEvery.msPerConnection;
          await clock.sleep(Math.max(listEvery.leastMs, everyMs), background.signal);
        }
      });
    },
    disconnected: (connection) => throttleAll(meter.takeEnded(connection, clock.monotonicMs()), []),
  };
}
