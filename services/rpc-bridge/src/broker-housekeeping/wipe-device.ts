import { maxKnownClientIds } from "@devmesh/contracts/keys";
import { originOfClientId } from "@devmesh/contracts/mqtt";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import { type BrokerLogin, connectMqtt, type MqttLink } from "../mqtt-link.ts";
import { type BrokerStorage, clearRetainedMessages } from "./broker-storage.ts";

/**
 * Removes from the broker what it stores of a device without access: sessions under these client ids, unreleased
 * messages at QoS 2, retained messages. Idempotent. Throws when the call aborts first, and `unavailable` when the
 * broker clears nothing.
 */
export type WipeDevice = (
  deviceId: string,
  clientIds: readonly string[],
  call: { readonly signal: AbortSignal; readonly log: Logger },
) => Promise<void>;

/**
 * Closes the connections of a device under its client ids and drops their sessions; the broker publishes no will.
 * Throws when not all of them are known to be closed.
 */
export type EndSessions = (
  deviceId: string,
  clientIds: readonly string[],
  signal: AbortSignal,
) => Promise<void>;

interface WipeDeviceOptions {
  readonly storage: Pick<BrokerStorage, "persistentSessions" | "retainedTopics" | "dropUnreleased">;
  readonly endSessions: EndSessions;
  readonly link: Pick<MqttLink, "publish">;
  /** Forgets what the bridge remembers of the device's retained messages. */
  readonly forget: (deviceId: string) => void;
}

/** Sessions ended in parallel. */
const wipeBatchSize = 8;

/**
 * Pages in a row that leave no fewer topics before the wipe fails as `unavailable`: a nats-server that has just started
 * learns of retained messages some seconds later, and clears none that it does not know.
 */
const maxFutilePages = 5;

export function createWipeDevice(options: WipeDeviceOptions): WipeDevice {
  const { storage, endSessions, link, forget } = options;

  async function clearRetained(deviceId: string, signal: AbortSignal): Promise<void> {
    let before = Number.POSITIVE_INFINITY;
    for (let futile = 0; futile < maxFutilePages; ) {
      signal.throwIfAborted();
      const { topics, total } = await storage.retainedTopics(deviceId);
      if (topics.length === 0) return;
      futile = total < before ? 0 : futile + 1;
      before = total;
      await clearRetainedMessages(link, topics, signal);
    }
    throw ServiceError.of("unavailable", {
      service: "nats-server",
      cause: new Error(`the broker still holds ${before} retained messages`),
    });
  }

  return async (deviceId, clientIds, { signal, log }) => {
    const found =
      clientIds.length < maxKnownClientIds ? [] : await storage.persistentSessions(deviceId, signal);
    const own = new Set([deviceId, ...[...clientIds, ...found].filter((id) => isOwnClientId(deviceId, id))]);
    await endSessions(deviceId, [...own], signal);
    await storage.dropUnreleased(deviceId, own);
    await clearRetained(deviceId, signal);
    forget(deviceId);
    log.info(
      { device_id: deviceId, sessions: own.size },
      "removed a device's sessions and retained messages",
    );
  };
}

/** Ends sessions by logging in under their client ids: the broker discards the will of a taken-over connection. */
export function createEndSessions(login: BrokerLogin): EndSessions {
  return async (deviceId, clientIds, signal) => {
    if (!clientIds.every((id) => isOwnClientId(deviceId, id)))
      throw new Error("a client id is not one of the device's");
    for (let at = 0; at < clientIds.length; at += wipeBatchSize) {
      signal.throwIfAborted();
      const group = clientIds.slice(at, at + wipeBatchSize);
      await Promise.all(group.map((clientId) => endSession(login, clientId, signal)));
    }
  };
}

/** A foreign client id would end a foreign session, the bridge's own included. */
function isOwnClientId(deviceId: string, clientId: string): boolean {
  return originOfClientId(clientId, deviceId) !== "foreign";
}

/** Any server of a cluster can end the session. Throws when none does. */
async function endSession(login: BrokerLogin, clientId: string, signal: AbortSignal): Promise<void> {
  const failures: unknown[] = [];
  for (const url of login.urls) {
    try {
      return await takeOver(login, url, clientId, signal);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(error);
    }
  }
  throw new AggregateError(failures, "no server of the broker ends a session");
}

/** A login with a clean session takes a client id over and drops the session with its queue. */
async function takeOver(
  login: BrokerLogin,
  url: string,
  clientId: string,
  signal: AbortSignal,
): Promise<void> {
  const client = connectMqtt(login, url, clientId);
  try {
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      if (signal.aborted) reject(signal.reason);
      client.once("connect", () => resolve());
      client.once("close", () => reject(new Error("the broker closed the connection")));
      client.on("error", reject);
    });
  } finally {
    await client.endAsync();
  }
}
