import type { DroppedBacklog } from "@devmesh/device-broker/session-backlog";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import type { BridgeMetrics } from "../metrics.ts";

/** What {@link keepBrokerRoom} needs. */
export interface BrokerRoomOptions {
  /** Drops what waits for kept sessions alone, or to be released by its sender, if that takes too much room. */
  readonly dropBacklog: () => Promise<readonly DroppedBacklog[]>;
  /** The device of which most waits for services, if that takes too much room; null when there is none. */
  readonly findMessageHoard: () => Promise<string | null>;
  /** Has the device kept out of the broker for a while. */
  readonly reportHoarding: (deviceId: string) => void;
  /** The device whose retained messages take too much room; null when there is none. */
  readonly findRetainedHoard: () => Promise<string | null>;
  /** Clears retained messages that a device published itself; how many. */
  readonly clearRetained: (deviceId: string) => Promise<number>;
  readonly metrics: Pick<BridgeMetrics, "queuedMessagesDropped" | "retainedMessagesCleared">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** How often is looked, in milliseconds. */
const lookEveryMs = 2_000;

/**
 * Keeps single devices from filling the broker's storage, without which no device is acknowledged anything: by
 * sessions that nobody comes back to, by messages that services have not handled, and by retained messages. Resolves
 * when `signal` aborts.
 */
export async function keepBrokerRoom(options: BrokerRoomOptions): Promise<void> {
  const {
    dropBacklog,
    findMessageHoard,
    reportHoarding,
    findRetainedHoard,
    clearRetained,
    metrics,
    clock,
    log,
    signal,
  } = options;

  async function look(): Promise<void> {
    for (const { deviceId, messages } of await dropBacklog()) {
      metrics.queuedMessagesDropped.inc(messages);
      log.warn(
        { device_id: deviceId, messages },
        "what waited for kept sessions of a device, or to be released by it, took too much room and was dropped",
      );
    }
    const flooder = await findMessageHoard();
    if (flooder !== null) {
      log.warn({ device_id: flooder }, "what waits of a device for services takes too much room");
      reportHoarding(flooder);
    }
    const hoarder = await findRetainedHoard();
    if (hoarder === null) return;
    const messages = await clearRetained(hoarder);
    metrics.retainedMessagesCleared.inc(messages);
    log.warn(
      { device_id: hoarder, messages },
      "retained messages of a device took too much room and were cleared",
    );
  }

  while (!signal.aborted) {
    try {
      await look();
    } catch (error) {
      log.warn({ err: error }, "the room that devices take in the broker could not be looked at or made");
    }
    await clock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}
