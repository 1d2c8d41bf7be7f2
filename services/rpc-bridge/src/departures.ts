import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason } from "@devmesh/service-kit/errors";
import type { Calls } from "./calls.ts";
import type { DevicesClient } from "./devices-client.ts";

/** What {@link departureHandler} needs. */
export interface DepartureOptions {
  readonly calls: Pick<Calls, "isWaitingFor" | "deviceWentOffline">;
  readonly devices: Pick<DevicesClient, "readPresence">;
  readonly clock: Clock;
  /** Gives up asking. */
  readonly signal: AbortSignal;
}

/** How long presence may take to answer, in milliseconds. */
const presenceMs = 2_000;

/**
 * Ends the calls of a device that is told to be offline or deleted, once presence confirms it: the device may have come back
 * before the news was here, and calls made since then wait for it rightly. Without an answer the calls keep waiting.
 */
export function departureHandler({ calls, devices, clock, signal }: DepartureOptions) {
  return async ({ id }: { readonly id: string }): Promise<void> => {
    if (!calls.isWaitingFor(id)) return;
    using call = createCallContext({ timeoutMs: presenceMs, signal, clock });
    const online = await devices.readPresence({ id }, call).then(
      (presence) => presence.online,
      (error: unknown) => {
        if (isReason(error, "device_not_found")) return false;
        throw error;
      },
    );
    if (!online) calls.deviceWentOffline(id);
  };
}
