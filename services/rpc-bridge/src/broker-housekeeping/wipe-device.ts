import { maxKnownClientIds } from "@devmesh/contracts/keys";
import type { RetainedTopics } from "@devmesh/device-broker/retained-messages";
import type { Logger } from "@devmesh/service-kit/logger";
import { isClientIdOf, isGeneratedClientId } from "../device-topics.ts";
import { type BrokerLogin, connectMqtt, type MqttLink } from "../mqtt-link.ts";
import { clearRetainedMessages } from "./clear-retained-messages.ts";

/**
 * Takes from the broker what it holds of a device whose access has ended: the session under each client id with its
 * queued messages, what it published at QoS 2 and never released, and its retained messages. Doing it again changes
 * nothing. Throws when it could not be finished before `signal` aborted; what was removed until then stays removed.
 */
export type WipeDevice = (
  deviceId: string,
  clientIds: readonly string[],
  signal: AbortSignal,
) => Promise<void>;

/**
 * Closes the connections of a device under its client ids and drops their sessions; the broker publishes no will of
 * theirs. Throws when not all of them are known to be closed.
 */
export type EndSessions = (
  deviceId: string,
  clientIds: readonly string[],
  signal: AbortSignal,
) => Promise<void>;

/** What {@link createWipeDevice} needs. */
export interface WipeDeviceOptions {
  readonly endSessions: EndSessions;
  readonly link: Pick<MqttLink, "publish">;
  /** Client ids under which the broker keeps a session of the device; takes long where it keeps many. */
  readonly keptSessions: (deviceId: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** Topics below `ID/` and `db/ID/` of which the broker holds a retained message, one page of them. */
  readonly retainedTopics: (deviceId: string) => Promise<RetainedTopics>;
  /** Drops what the device published at QoS 2 and never released, under any of its client ids. */
  readonly dropHeld: (deviceId: string, clientIds: Iterable<string>) => Promise<void>;
  /** Forgets what the bridge remembers of the device's retained messages. */
  readonly forget: (deviceId: string) => void;
  readonly log: Logger;
}

/** Sessions that are ended side by side. */
const endedAtOnce = 8;

/** Pages in a row that leave no fewer topics before the wipe fails: what publishes meanwhile is not the device. */
const maxFutilePages = 5;

/** The clean-up on one broker: sessions end by logging in as them, retained messages by clearing each. */
export function createWipeDevice(options: WipeDeviceOptions): WipeDevice {
  const { endSessions, link, keptSessions, retainedTopics, dropHeld, forget, log } = options;

  async function clearRetained(deviceId: string, signal: AbortSignal): Promise<void> {
    let before = Number.POSITIVE_INFINITY;
    for (let futile = 0; futile < maxFutilePages; ) {
      signal.throwIfAborted();
      const { topics, total } = await retainedTopics(deviceId);
      if (topics.length === 0) return;
      futile = total < before ? 0 : futile + 1;
      before = total;
      await clearRetainedMessages(link, topics, signal);
    }
    throw new Error(`the broker still holds ${before} retained messages`);
  }

  return async (deviceId, clientIds, signal) => {
    const found = clientIds.length < maxKnownClientIds ? [] : await keptSessions(deviceId, signal);
    const own = new Set([deviceId, ...[...clientIds, ...found].filter((id) => isOwnClientId(deviceId, id))]);
    await endSessions(deviceId, [...own], signal);
    await dropHeld(deviceId, own);
    await clearRetained(deviceId, signal);
    forget(deviceId);
    log.info(
      { device_id: deviceId, sessions: own.size },
      "a device's sessions and retained messages are gone",
    );
  };
}

/**
 * Ends sessions by logging in under their client ids: the broker discards the will of a connection that is taken
 * over.
 */
export function createEndSessions(login: BrokerLogin): EndSessions {
  return async (deviceId, clientIds, signal) => {
    if (!clientIds.every((id) => isOwnClientId(deviceId, id)))
      throw new Error("a client id is not one of the device's");
    await inGroups(clientIds, endedAtOnce, signal, (clientId) => endSession(login, clientId, signal));
  };
}

/** Another's client id would end another's session, the bridge's own included. */
function isOwnClientId(deviceId: string, clientId: string): boolean {
  return isClientIdOf(deviceId, clientId) || isGeneratedClientId(clientId);
}

/**
 * Any server of a cluster ends the session, whichever holds it: the first that lets the bridge in. Throws when none
 * does.
 */
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

/**
 * A login with a clean session takes a client id over from whoever holds it and drops the session with its queue; its
 * own ends with the connection.
 */
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

async function inGroups<T>(
  items: readonly T[],
  size: number,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < items.length; at += size) {
    signal.throwIfAborted();
    await Promise.all(items.slice(at, at + size).map(work));
  }
}
