import { deviceEvents } from "@devmesh/contracts/devices";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import { type ActiveSubscription, subscribe } from "@devmesh/service-kit/events/subscription";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { InFlightCalls } from "./calls/in-flight-calls.ts";
import type { DevicesClient } from "./devices-client.ts";
import type { DeltaPublisher } from "./shadow/shadow-delta.ts";

interface EndCallsOptions {
  readonly calls: Pick<InFlightCalls, "isWaitingFor" | "endOf">;
  readonly devices: Pick<DevicesClient, "readPresence">;
  readonly online: Pick<Set<string>, "delete">;
  readonly clock: Clock;
  /** Ends all calls of `devices`. */
  readonly signal: AbortSignal;
}

interface DeviceEventHandlersOptions {
  readonly bus: Bus;
  readonly deltas: Pick<DeltaPublisher, "welcome" | "refresh">;
  readonly endCallsIfGone: EndCallsIfGone;
}

/** How long presence may take to answer, in milliseconds. */
const presenceTimeoutMs = 2_000;

/** Ends the calls of a device that `devices` confirms to be gone; rejects if it cannot be asked. */
export type EndCallsIfGone = (id: string) => Promise<void>;

/**
 * A device that seems to be gone is not known to be online any more. It may be back already, so `devices` is asked;
 * without an answer the calls keep waiting.
 */
export function createEndCallsIfGone(options: EndCallsOptions): EndCallsIfGone {
  const { calls, devices, online, clock, signal } = options;
  return async (id) => {
    online.delete(id);
    if (!calls.isWaitingFor(id)) return;
    using call = createCallContext({ timeoutMs: presenceTimeoutMs, signal, clock });
    try {
      const { online } = await devices.readPresence({ id }, call);
      if (!online) calls.endOf(id, "offline");
    } catch (error) {
      if (!isReason(error, "device_not_found")) throw error;
      calls.endOf(id, "deleted");
    }
  };
}

/** Subscribes to the events of `devices`. */
export function handleDeviceEvents(options: DeviceEventHandlersOptions): ActiveSubscription {
  const { bus, deltas, endCallsIfGone } = options;
  const endCalls = ({ id }: { readonly id: string }) => endCallsIfGone(id);

  // Each replica ends its own calls; one of them publishes deltas. A created device gets its first when it connects.
  const gone = subscribe(
    bus,
    { events: deviceEvents, names: ["offline", "deleted"] },
    { offline: endCalls, deleted: endCalls },
    { mode: "each" },
  );
  const changed = subscribe(
    bus,
    { events: deviceEvents, names: ["online", "updated"] },
    {
      online: ({ id }) => deltas.welcome(id),
      updated: ({ id }) => deltas.refresh(id),
    },
    { mode: "one" },
  );
  return {
    async stop() {
      await Promise.all([gone.stop(), changed.stop()]);
    },
  };
}
