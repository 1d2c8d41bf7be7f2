import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason } from "@devmesh/service-kit/errors";
import type { Calls } from "./calls/calls.ts";
import type { DevicesClient } from "./devices-client.ts";

/** What {@link departureHandler} needs. */
export interface DepartureOptions {
  readonly calls: Pick<Calls, "isWaitingFor" | "endOf">;
  readonly devices: Pick<DevicesClient, "readPresence">;
  readonly clock: Clock;
  /** Gives up asking. */
  readonly signal: AbortSignal;
}

/** How long presence may take to answer, in milliseconds. */
const presenceMs = 2_000;

/**
 * Ends the calls of a device after an event `offline` or `deleted`, once the registry confirms it: the device may be
 * back before the event arrives, and newer calls wait for it rightly. Without an answer of the registry the calls
 * keep waiting.
 */
export function departureHandler({ calls, devices, clock, signal }: DepartureOptions) {
  return async ({ id }: { readonly id: string }): Promise<void> => {
    if (!calls.isWaitingFor(id)) return;
    using call = createCallContext({ timeoutMs: presenceMs, signal, clock });
    try {
      const { online } = await devices.readPresence({ id }, call);
      if (!online) calls.endOf(id, "offline");
    } catch (error) {
      if (!isReason(error, "device_not_found")) throw error;
      calls.endOf(id, "deleted");
    }
  };
}
