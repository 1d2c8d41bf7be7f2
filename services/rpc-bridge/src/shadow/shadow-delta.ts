import { maxGatheredDevices } from "@devmesh/contracts/devices";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import type { Clock } from "@devmesh/service-kit/clock";
import { gather } from "@devmesh/service-kit/gather";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { DevicesClient } from "../devices-client.ts";
import type { MqttLink } from "../mqtt-link.ts";
import { withRetries } from "../retry.ts";

/** Keeps the retained message on `ID/shadow/delta` equal to the store's delta (api.md, MQTT). */
export type DeltaPublisher = ReturnType<typeof createDeltaPublisher>;

export interface DeltaPublisherOptions {
  readonly devices: Pick<DevicesClient, "readDeltas">;
  readonly link: Pick<MqttLink, "publish">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

/** Devices refreshed in parallel; the others wait, each once. */
const maxConcurrent = 256;

/** Calls of `devices` at one time, each for many devices, and how long one may take in milliseconds. */
const maxCalls = 2;
const readMs = 5_000;

/** Devices whose last published delta is remembered; others get it again on the next refresh. */
const maxRemembered = 100_000;

/** Wait after a failed publication, in milliseconds. */
const retryAfterMs = 500;

/**
 * Time in which a connected device subscribes, in milliseconds. nats-server looks up the retained message before it
 * adds the subscription: the device misses what is published in between.
 */
const subscribeWithinMs = 2_000;

/** A delta as `devices` reads it. */
type DeviceDelta = NonNullable<Awaited<ReturnType<DevicesClient["readDeltas"]>>[number]>;

/** A delta and when the broker acknowledged it, in Unix milliseconds. */
interface Published extends Pick<DeviceDelta, "version" | "timestamp" | "has_metadata"> {
  readonly at: number;
}

/**
 * For each device: read the delta, publish it if this replica published another one last, read again. Since the last
 * of several replicas to publish reads once more, the broker's copy converges.
 */
export function createDeltaPublisher(options: DeltaPublisherOptions) {
  const { devices, link, clock, log, signal } = options;
  const published = new Map<string, Published>();
  /** Devices whose delta is published again if it was published since then, in Unix milliseconds. */
  const unsettled = new Map<string, number>();
  const waiting = new Set<string>();
  const active = new Set<string>();
  const idlers: (() => void)[] = [];

  function startWaiting(): void {
    for (const deviceId of waiting) {
      if (active.size >= maxConcurrent) break;
      if (active.has(deviceId)) continue;
      waiting.delete(deviceId);
      active.add(deviceId);
      void bringUpToDate(deviceId)
        .catch((error: unknown) => {
          if (signal.aborted) return;
          log.warn(
            { err: error, device_id: deviceId },
            "a delta is out of date until the next change or connect",
          );
        })
        .finally(() => {
          active.delete(deviceId);
          if (!signal.aborted) startWaiting();
          if (active.size === 0) for (const resolve of idlers.splice(0)) resolve();
        });
    }
  }

  async function bringUpToDate(deviceId: string): Promise<void> {
    for (let wrote = false; ; wrote = true) {
      const delta = await readDelta(deviceId);
      const last = published.get(deviceId);
      const since = unsettled.get(deviceId) ?? Number.POSITIVE_INFINITY;
      published.delete(deviceId);
      unsettled.delete(deviceId);
      if (delta === null) {
        // Clears a delta written during the deletion: a later device of the id must not get it.
        if (!wrote || (await publish(deviceId, ""))) return;
        continue;
      }
      // The timestamp differs for a later device of the same id.
      const isSame = last?.version === delta.version && last.timestamp === delta.timestamp;
      if (isSame && last.has_metadata === delta.has_metadata && last.at < since) {
        remember(deviceId, last);
        return;
      }
      if (await publish(deviceId, payloadOf(delta))) {
        remember(deviceId, { ...delta, at: clock.now().getTime() });
      }
    }
  }

  /** Null: there is no such device. */
  const readOne = gather<string, DeviceDelta | null>({
    async ask(ids) {
      using call = createCallContext({ timeoutMs: readMs, signal, clock });
      return await devices.readDeltas({ ids: [...ids] }, call);
    },
    maxItems: maxGatheredDevices,
    maxCalls,
  });
  const readDelta = (deviceId: string) => withRetries(() => readOne(deviceId), clock, signal);

  /** False, after a wait, when it failed: the delta must then be read again. */
  async function publish(deviceId: string, payload: string): Promise<boolean> {
    try {
      await link.publish(deviceTopics.shadowDelta(deviceId), payload, { retain: true });
      return true;
    } catch (error) {
      log.debug({ err: error, device_id: deviceId }, "a delta could not be published yet");
      await clock.sleep(retryAfterMs, signal);
      return false;
    }
  }

  function remember(deviceId: string, { version, timestamp, has_metadata, at }: Published): void {
    setNewest(published, deviceId, { version, timestamp, has_metadata, at }, maxRemembered);
  }

  /** Publishes the delta if it changed. Returns at once. */
  function refresh(deviceId: string): void {
    if (signal.aborted) return;
    waiting.add(deviceId);
    startWaiting();
  }

  return {
    refresh,
    /**
     * For a device that has just connected: like `refresh`, and a delta published around that time is published once
     * more when the device has subscribed. Returns at once.
     */
    welcome(deviceId: string): void {
      refresh(deviceId);
      const since = clock.now().getTime() - subscribeWithinMs;
      clock.schedule(subscribeWithinMs, () => {
        if (signal.aborted) return;
        unsettled.set(deviceId, since);
        refresh(deviceId);
      });
    },
    /** Forgets what was published for a device whose retained messages are cleared. */
    forget: (deviceId: string) => void published.delete(deviceId),
    /** Resolves when no delta is being published. */
    async idle(): Promise<void> {
      if (active.size > 0) await new Promise<void>((resolve) => idlers.push(resolve));
    },
  };
}

/** The message on `ID/shadow/delta`; some devices want it small. */
function payloadOf({ state, metadata, version, timestamp, has_metadata }: DeviceDelta): string {
  return JSON.stringify({ state, ...(has_metadata && { metadata }), version, timestamp });
}
