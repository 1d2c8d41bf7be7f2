import type { ShadowDelta } from "@devmesh/contracts/model/shadow";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import { deviceTopics } from "../device-topics.ts";
import type { DevicesClient } from "../devices-client.ts";
import type { MqttLink } from "../mqtt-link.ts";
import { withRetries } from "../retry.ts";

/** Keeps the retained message on `ID/shadow/delta` equal to the store's delta (api.md, MQTT). */
export interface DeltaPublisher {
  /** The device's shadow may have changed, or the device may have missed a change. Returns at once. */
  refresh(deviceId: string): void;
  /**
   * The device has connected and is about to subscribe. Like `refresh`, and a delta that went out around that time is
   * published once more when the device has had the time to subscribe. Returns at once.
   */
  welcome(deviceId: string): void;
  /** Forgets what was published for a device: the broker holds nothing of it any more. */
  forget(deviceId: string): void;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

/** What {@link createDeltaPublisher} needs. */
export interface DeltaPublisherOptions {
  readonly devices: Pick<DevicesClient, "readDelta">;
  readonly link: Pick<MqttLink, "publish">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

/** Devices that are brought up to date side by side; the others wait, each once, however often it changes. */
const maxConcurrent = 32;

/** Devices whose last published delta is remembered. Of others it is published again on the next occasion. */
const maxRemembered = 100_000;

/** Wait after the broker was not there to publish to, in milliseconds. */
const retryAfterMs = 500;

/**
 * Time in which a device that has connected subscribes, in milliseconds. nats-server looks up the retained message and
 * adds the subscription in two steps: what is published between them, the device would not get.
 */
const subscribeWithinMs = 2_000;

/** A delta that the broker has taken, and when it had, in Unix milliseconds. */
interface Published extends Pick<ShadowDelta, "version" | "timestamp"> {
  readonly at: number;
}

/**
 * For one device at a time: read the delta, publish it if it is not what this replica published last, read again.
 * The broker's copy is right in the end also when several replicas publish side by side, since the last one to
 * publish reads after that and finds what has changed meanwhile. Versions never go back inside a replica, and a change
 * that is followed by another before it went out is left out.
 */
export function createDeltaPublisher(options: DeltaPublisherOptions): DeltaPublisher {
  const { devices, link, clock, log, signal } = options;
  const published = new Map<string, Published>();
  /** Devices whose delta is to be published again if it went out since, in Unix milliseconds. */
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
        // Written while the device was being deleted: a later device of that id must not find it.
        if (!wrote || (await publish(deviceId, ""))) return;
        continue;
      }
      // The timestamp tells a device from an earlier one of the same id.
      if (last?.version === delta.version && last.timestamp === delta.timestamp && last.at < since) {
        remember(deviceId, last);
        return;
      }
      if (await publish(deviceId, JSON.stringify(delta))) {
        remember(deviceId, { ...delta, at: clock.now().getTime() });
      }
    }
  }

  /** Null: there is no such device. */
  async function readDelta(deviceId: string): Promise<ShadowDelta | null> {
    return await withRetries(
      async () => {
        using call = createCallContext({ timeoutMs: 5_000, signal, clock });
        return await devices.readDelta({ id: deviceId }, call).catch((error: unknown) => {
          if (isReason(error, "device_not_found")) return null;
          throw error;
        });
      },
      clock,
      signal,
    );
  }

  /** False, after a wait, when the broker did not take it: what is to be published then has to be read anew. */
  async function publish(deviceId: string, payload: string): Promise<boolean> {
    try {
      await link.publish(deviceTopics.delta(deviceId), payload, { retain: true });
      return true;
    } catch (error) {
      log.debug({ err: error, device_id: deviceId }, "a delta could not be published yet");
      await clock.sleep(retryAfterMs, signal);
      return false;
    }
  }

  function remember(deviceId: string, { version, timestamp, at }: Published): void {
    published.set(deviceId, { version, timestamp, at });
    const [oldest] = published.keys();
    if (published.size > maxRemembered && oldest !== undefined) published.delete(oldest);
  }

  function refresh(deviceId: string): void {
    if (signal.aborted) return;
    waiting.add(deviceId);
    startWaiting();
  }

  return {
    refresh,
    welcome(deviceId) {
      refresh(deviceId);
      const since = clock.now().getTime() - subscribeWithinMs;
      clock.schedule(subscribeWithinMs, () => {
        if (signal.aborted) return;
        unsettled.set(deviceId, since);
        refresh(deviceId);
      });
    },
    forget(deviceId) {
      published.delete(deviceId);
    },
    async idle() {
      if (active.size > 0) await new Promise<void>((resolve) => idlers.push(resolve));
    },
  };
}
