import { deviceEvents } from "@devmesh/contracts/devices";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason } from "@devmesh/service-kit/errors";
import { type ActiveSubscription, subscribe } from "@devmesh/service-kit/events";
import type { Calls } from "./calls/calls.ts";
import type { DevicesClient } from "./devices-client.ts";
import type { DeltaPublisher } from "./shadow/shadow-delta.ts";

interface DeviceEventHandlersOptions {
  readonly bus: Bus;
  readonly calls: Pick<Calls, "isWaitingFor" | "endOf">;
  readonly devices: Pick<DevicesClient, "readPresence">;
  readonly deltas: Pick<DeltaPublisher, "welcome" | "refresh">;
  readonly clock: Clock;
  /** Ends all calls of `devices`. */
  readonly signal: AbortSignal;
}

/** How long presence may take to answer, in milliseconds. */
const presenceTimeoutMs = 2_000;

/** Subscribes to the events of `devices`. */
export function handleDeviceEvents(options: DeviceEventHandlersOptions): ActiveSubscription {
  const { bus, calls, devices, deltas, clock, signal } = options;

  /**
   * Ends the calls of a device that `devices` confirms to be gone: it may be back before the event arrives. Without an
   * answer the calls keep waiting.
   */
  async function endCalls({ id }: { readonly id: string }): Promise<void> {
    if (!calls.isWaitingFor(id)) return;
    using call = createCallContext({ timeoutMs: presenceTimeoutMs, signal, clock });
    try {
      const { online } = await devices.readPresence({ id }, call);
      if (!online) calls.endOf(id, "offline");
    } catch (error) {
      if (!isReason(error, "device_not_found")) throw error;
      calls.endOf(id, "deleted");
    }
  }

  // Each replica ends its own calls; one of them publishes deltas.
  const gone = subscribe(
    bus,
    { events: deviceEvents, names: ["offline", "deleted"] },
    { offline: endCalls, deleted: endCalls },
    { mode: "each" },
  );
  const changed = subscribe(
    bus,
    { events: deviceEvents, names: ["online", "updated", "created"] },
    {
      online: ({ id }) => deltas.welcome(id),
      updated: ({ id }) => deltas.refresh(id),
      created: ({ id }) => deltas.refresh(id),
    },
    { mode: "one" },
  );
  return {
    async stop() {
      await Promise.all([gone.stop(), changed.stop()]);
    },
  };
}
