import { maxKnownClientIds } from "@devmesh/contracts/keys";
import type { Logger } from "@devmesh/service-kit/logger";
import { clearRetainedMessage } from "./clear-retained-message.ts";
import { isClientIdOf, isGeneratedClientId } from "./device-topics.ts";
import { type BrokerLogin, connectMqtt, type MqttLink } from "./mqtt-link.ts";

/**
 * Takes from the broker what it holds of a device whose access has ended: the session under each client id with its
 * queued messages, what it published at QoS 2 and never released, and its retained messages. Doing it again changes nothing.
 * Throws when it could not be finished before `signal` aborted; what was removed until then stays removed.
 */
export type WipeDevice = (
  deviceId: string,
  clientIds: readonly string[],
  signal: AbortSignal,
) => Promise<void>;

/** What {@link createWipeDevice} needs. */
export interface WipeDeviceOptions {
  readonly login: BrokerLogin;
  readonly link: Pick<MqttLink, "publish">;
  /** Client ids under which the broker keeps a session of the device; takes long where it keeps many. */
  readonly keptSessions: (deviceId: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** Topics below `ID/` and `db/ID/` of which the broker holds a retained message. */
  readonly retainedTopics: (deviceId: string) => Promise<readonly string[]>;
  /** Drops what the device published at QoS 2 and never released, under any of its client ids. */
  readonly dropHeld: (deviceId: string, clientIds: Iterable<string>) => Promise<void>;
  /** Forgets what the bridge remembers of the device's retained messages. */
  readonly forget: (deviceId: string) => void;
  readonly log: Logger;
}

/** Retained messages that are cleared side by side. */
const clearedAtOnce = 64;

/** Sessions that are ended side by side. */
const endedAtOnce = 8;

/** Rounds of listing and clearing before it is called a failure: what publishes meanwhile is not the device's. */
const maxRounds = 5;

/** The clean-up on one broker: sessions end by logging in as them, retained messages go by overwriting and clearing each. */
export function createWipeDevice(options: WipeDeviceOptions): WipeDevice {
  const { login, link, keptSessions, retainedTopics, dropHeld, forget, log } = options;

  const clear = (topic: string) => clearRetainedMessage(link, topic);

  async function clearRetained(deviceId: string, signal: AbortSignal): Promise<void> {
    for (let round = 0; round < maxRounds; round++) {
      signal.throwIfAborted();
      const topics = await retainedTopics(deviceId);
      if (topics.length === 0) return;
      await inGroups(topics, clearedAtOnce, signal, clear);
    }
    throw new Error(`the broker still holds retained messages after ${maxRounds} rounds`);
  }

  return async (deviceId, clientIds, signal) => {
    // Another's client id would end another's session, the bridge's own included.
    const isOwn = (id: string) => isClientIdOf(deviceId, id) || isGeneratedClientId(id);
    const found = clientIds.length < maxKnownClientIds ? [] : await keptSessions(deviceId, signal);
    const own = new Set([deviceId, ...[...clientIds, ...found].filter(isOwn)]);
    await inGroups([...own], endedAtOnce, signal, (clientId) => endSession(login, clientId, signal));
    await dropHeld(deviceId, own);
    await clearRetained(deviceId, signal);
    forget(deviceId);
    log.info(
      { device_id: deviceId, sessions: own.size },
      "a device's sessions and retained messages are gone",
    );
  };
}

/** Any server of a cluster ends the session, whichever holds it: the first that lets the bridge in. Throws when none does. */
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
