import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import type { DroppedBacklog } from "@devmesh/service-kit/session-backlog";
import type { BridgeMetrics } from "./metrics.ts";

/** What {@link keepSessionRoom} needs. */
export interface SessionRoomOptions {
  /** Drops what waits for kept sessions alone, if that takes too much room. */
  readonly dropBacklog: () => Promise<readonly DroppedBacklog[]>;
  readonly metrics: Pick<BridgeMetrics, "queuedMessagesDropped">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** How often is looked, in milliseconds. */
const lookEveryMs = 2_000;

/**
 * Keeps sessions that nobody comes back to from filling the broker's storage, without which no device is acknowledged anything.
 * Resolves when `signal` aborts.
 */
export async function keepSessionRoom(options: SessionRoomOptions): Promise<void> {
  const { dropBacklog, metrics, clock, log, signal } = options;
  while (!signal.aborted) {
    try {
      for (const { deviceId, messages } of await dropBacklog()) {
        metrics.queuedMessagesDropped.inc(messages);
        log.warn(
          { device_id: deviceId, messages },
          "what waited for kept sessions of a device took too much room and was dropped",
        );
      }
    } catch (error) {
      log.debug({ err: error }, "the broker could not be asked what it keeps for sessions");
    }
    await clock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}
