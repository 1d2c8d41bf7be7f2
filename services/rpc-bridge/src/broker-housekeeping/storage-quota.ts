import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { repeat } from "@devmesh/service-kit/retry";
import type { BridgeMetrics } from "../metrics.ts";
import type { BrokerStorage } from "./broker-storage.ts";

interface StorageQuotaOptions {
  readonly storage: Pick<
    BrokerStorage,
    "dropBacklog" | "findMessageHoard" | "findRetainedHoard" | "clearRetained"
  >;
  /** Has the device kept out of the broker for a while. */
  readonly reportHoarding: (deviceId: string) => void;
  readonly metrics: Pick<BridgeMetrics, "queuedMessagesDropped" | "retainedMessagesCleared">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Interval of checks, in milliseconds. */
const checkEveryMs = 2_000;

/**
 * Keeps single devices from filling the broker's storage by sessions without a client, by messages that services have
 * not handled, and by retained messages. Resolves when `signal` aborts.
 */
export async function enforceStorageQuota(options: StorageQuotaOptions): Promise<void> {
  const { storage, reportHoarding, metrics, clock, log, signal } = options;

  async function check(): Promise<void> {
    for (const { deviceId, messages } of await storage.dropBacklog()) {
      metrics.queuedMessagesDropped.inc(messages);
      log.warn(
        { device_id: deviceId, messages },
        "dropped messages that waited for persistent sessions of a device or for its release",
      );
    }
    const flooding = await storage.findMessageHoard();
    if (flooding !== null) {
      log.warn({ device_id: flooding }, "unhandled messages of a device exceed the storage quota");
      reportHoarding(flooding);
    }
    const hoarding = await storage.findRetainedHoard();
    if (hoarding === null) return;
    const messages = await storage.clearRetained(hoarding);
    metrics.retainedMessagesCleared.inc(messages);
    log.warn({ device_id: hoarding, messages }, "cleared retained messages of a device");
  }

  await repeat(check, {
    everyMs: checkEveryMs,
    onFailure: (error) => log.warn({ err: error }, "the storage quota of devices could not be checked"),
    clock,
    signal,
  });
}
