import type { Throttling } from "@devmesh/contracts/model/notification";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import type { Logger } from "@devmesh/service-kit/logger";
import { Counter, type Registry } from "prom-client";
import type { z } from "zod";
import type { Background } from "../background.ts";
import type { DeviceNotices } from "../registry/device-events.ts";
import type { DeviceConnections, OpenConnection } from "./device-connections.ts";
import { type TrafficLimits, TrafficMeter } from "./traffic-meter.ts";

/** What throttling needs. */
export interface ThrottleDeps {
  readonly connections: DeviceConnections;
  readonly notices: Pick<DeviceNotices, "throttled">;
  readonly limits: TrafficLimits;
  readonly registry: Registry;
  readonly background: Background;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Closes a device that does too much and refuses its logins for a while, so that only that one loses. Returns at
 * once. `known` are connections of the device that were listed already.
 */
export type ThrottleDevice = (
  deviceId: string,
  why: z.infer<typeof Throttling>["why"],
  known?: readonly OpenConnection[],
) => void;

/** How long logins are refused, in milliseconds: doubled each time, and the first again after a quiet hour. */
const refusal = { firstMs: 10_000, longestMs: 600_000, forgottenAfterMs: 3_600_000 } as const;

/** Devices whose last refusal is remembered; beyond it the one refused longest ago begins again with the first. */
const maxRemembered = 10_000;

/**
 * How often connections are listed, in milliseconds: once for each thousand of them, since an answer has 600 bytes
 * for each.
 */
const listEvery = { leastMs: 200, msPerConnection: 1 } as const;

const callTimeoutMs = 10_000;

/** Milliseconds after which connections are closed again: a login that was being checked may come through. */
const closeAgainAfterMs = 2_000;

/** Watches what devices send from now on, until the background ends, and throttles those that send too much. */
export function startThrottling(deps: ThrottleDeps): ThrottleDevice {
  const { connections, notices, limits, registry, background, clock, log } = deps;
  const refused = new Map<string, { readonly ms: number; readonly untilMs: number }>();
  const count = new Counter({
    name: "devmesh_devices_throttled_total",
    help: "Times that a device was kept out of the broker for a while.",
    labelNames: ["why"],
    registers: [registry],
  });

  /** Null while the device is refused already. */
  function nextRefusal(deviceId: string): number | null {
    const now = clock.monotonicMs();
    const last = refused.get(deviceId);
    if (last !== undefined && now < last.untilMs) return null;
    const remembered = last !== undefined && now - last.untilMs < refusal.forgottenAfterMs;
    const ms = remembered ? Math.min(2 * last.ms, refusal.longestMs) : refusal.firstMs;
    refused.delete(deviceId);
    refused.set(deviceId, { ms, untilMs: now + ms });
    const [oldest] = refused.keys();
    if (refused.size > maxRemembered && oldest !== undefined) refused.delete(oldest);
    return ms;
  }

  const close = (deviceId: string) =>
    background.retry("closing the connections of a throttled device", callTimeoutMs, async (call) => {
      const listed = await connections.list(call, deviceId);
      // Closed by the broker, which unlike a takeover leaves the sessions of the device and what waits in them.
      await Promise.all(listed.connections.map((connection) => connections.close(connection, call)));
    });

  const throttle: ThrottleDevice = (deviceId, why, known = []) => {
    const refusedMs = nextRefusal(deviceId);
    if (refusedMs === null) return;
    count.inc({ why });
    log.warn({ device_id: deviceId, why, refused_ms: refusedMs }, "a device is kept out of the broker");
    // At once: publishing and listing take long while a flood lasts.
    background.run("closing the listed connections of a throttled device", async () => {
      using call = createCallContext({ timeoutMs: callTimeoutMs, signal: background.signal, clock });
      await Promise.all(known.map((connection) => connections.close(connection, call)));
    });
    background.run("throttling a device", async () => {
      // Published before they are closed, so that `keys` refuses the device when it comes back at once.
      await background.retry("publishing that a device is throttled", callTimeoutMs, (call) =>
        notices.throttled(deviceId, { why, refused_ms: refusedMs }, call),
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
