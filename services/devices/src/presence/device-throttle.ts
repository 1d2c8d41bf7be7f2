import type { Throttling } from "@devmesh/contracts/model/notification";
import type { OpenDeviceConnection } from "@devmesh/device-broker/connections";
import { createCallContext } from "@devmesh/service-kit/context";
import type { Logger } from "@devmesh/service-kit/logger";
import { metricsOn } from "@devmesh/service-kit/metrics";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { Registry } from "prom-client";
import type { z } from "zod";
import type { DevicesOptions } from "../devices-options.ts";
import type { DeviceEventPublisher } from "../registry/device-events.ts";
import { type TrafficLimits, TrafficMeter } from "./traffic-meter.ts";

interface ThrottlingOptions extends Pick<DevicesOptions, "connections" | "background" | "clock"> {
  readonly events: Pick<DeviceEventPublisher, "throttled">;
  readonly limits: TrafficLimits;
  readonly registry: Registry;
  readonly log: Logger;
}

/**
 * Disconnects a device that exceeds its limits and refuses its logins for a while. Returns at once. `known`: listed
 * connections of the device.
 */
export type ThrottleDevice = (
  deviceId: string,
  why: z.infer<typeof Throttling>["why"],
  known?: readonly OpenDeviceConnection[],
) => void;

/** How long logins are refused, in milliseconds: doubled each time, reset after an hour without excess. */
const refusal = { firstMs: 10_000, longestMs: 600_000, forgottenAfterMs: 3_600_000 } as const;

/** Devices whose last refusal is remembered; beyond it the oldest refusal is forgotten. */
const maxRemembered = 10_000;

/** Interval of listings, in milliseconds: it grows with the connections, since each is 600 bytes of the answer. */
const listEvery = { leastMs: 200, msPerConnection: 1 } as const;

const callTimeoutMs = 10_000;

/** Milliseconds after which connections are closed again: a login that was being checked may succeed. */
const closeAgainAfterMs = 2_000;

/** Meters what devices send until the background ends, and throttles those that send too much. */
export function startThrottling(options: ThrottlingOptions): ThrottleDevice {
  const { connections, events, limits, registry, background, clock, log } = options;
  const refused = new Map<string, { readonly ms: number; readonly untilMs: number }>();
  const count = metricsOn(registry).counter(
    "devmesh_devices_throttled_total",
    "Times that a device was kept out of the broker for a while.",
    "why",
  );

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

  const throttle: ThrottleDevice = (deviceId, why, known = []) => {
    const refusedMs = nextRefusal(deviceId);
    if (refusedMs === null) return;
    count.inc({ why });
    log.warn({ device_id: deviceId, why, refused_ms: refusedMs }, "a device is kept out of the broker");
    // At once: publishing and listing are slow during a flood.
    background.run("closing the listed connections of a throttled device", async () => {
      using call = createCallContext({ timeoutMs: callTimeoutMs, signal: background.signal, clock });
      await Promise.all(known.map((connection) => connections.close(connection, call)));
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
  };

  background.run("metering what devices send", async () => {
    const meter = new TrafficMeter(limits);
    for (;;) {
      const [listed, at] = await background.retry(
        "listing what devices sent",
        callTimeoutMs,
        async (call) => {
          const begun = clock.monotonicMs();
          return [await connections.list(call), begun] as const;
        },
      );
      for (const { deviceId, why } of meter.take(listed, at)) {
        const open = listed.connections.filter((connection) => connection.deviceId === deviceId);
        throttle(deviceId, why, open);
      }
      const everyMs = Math.max(listEvery.leastMs, listed.connections.length * listEvery.msPerConnection);
      await clock.sleep(everyMs, background.signal);
    }
  });
  return throttle;
}
