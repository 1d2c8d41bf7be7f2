import { recordRoot } from "@devmesh/contracts/model/device-id";
import { deviceTopics, mqttBounds } from "@devmesh/contracts/mqtt";
import { readSessions } from "@devmesh/device-broker/persistent-sessions";
import { dropQos2Backlog, dropQos2Messages } from "@devmesh/device-broker/qos2-inbox";
import { findRetainedHoard, listRetainedTopics } from "@devmesh/device-broker/retained-messages";
import {
  type DroppedBacklog,
  dropSessionBacklog,
  findMessageHoard,
} from "@devmesh/device-broker/session-backlog";
import type { Bus } from "@devmesh/service-kit/bus";
import { deviceOfSession } from "../device-topics.ts";
import type { MqttLink } from "../mqtt-link.ts";

/**
 * The part of `DEVICE_STREAM_MAX_BYTES` that messages for persistent sessions alone may take. Retained messages and
 * unreleased ones at QoS 2, which the broker stores apart, may take as much each.
 */
const deviceShare = 0.5;

/** Retained messages of one device beyond which they are cleared: nats-server keeps each topic in its memory. */
const { retainedMessages: maxRetainedMessages } = mqttBounds;

/** Retained messages cleared before the broker is asked again. */
const clearBatchSize = 10_000;

/** Reads and removes what the broker stores for devices. */
export type BrokerStorage = ReturnType<typeof createBrokerStorage>;

interface BrokerStorageOptions {
  /** Connection to account DEVICES. */
  readonly bus: Bus;
  /** Clears retained messages. */
  readonly link: Pick<MqttLink, "publish">;
  /** `DEVICE_STREAM_MAX_BYTES`. */
  readonly streamBytes: number;
  readonly signal: AbortSignal;
}

export function createBrokerStorage({ bus, link, streamBytes, signal }: BrokerStorageOptions) {
  const maxBytes = streamBytes * deviceShare;
  return {
    /** Client ids under which the broker keeps a session of the device; slow, it reads all sessions. */
    async persistentSessions(deviceId: string, asked: AbortSignal): Promise<readonly string[]> {
      const clientIds: string[] = [];
      for await (const session of readSessions(bus, 1, asked))
        if (!session.clean && deviceOfSession(session) === deviceId) clientIds.push(session.clientId);
      return clientIds;
    },
    /** Topics of the device with a retained message, one page of them. */
    retainedTopics: (deviceId: string) => listRetainedTopics(bus, deviceId),
    /** Drops what the device published at QoS 2 and never released, under any of its client ids. */
    dropUnreleased: (deviceId: string, clientIds: Iterable<string>) =>
      dropQos2Messages(bus, deviceId, clientIds),
    /** Drops what waits only for persistent sessions, or for its release at QoS 2, beyond the quota. */
    async dropBacklog(): Promise<readonly DroppedBacklog[]> {
      const ofSessions = await dropSessionBacklog(bus, { maxBytes, signal });
      const unreleased = await dropQos2Backlog(bus, maxBytes);
      return unreleased === null ? ofSessions : [...ofSessions, unreleased];
    },
    /** The device with most messages that services have not handled, beyond the quota. */
    findMessageHoard: () => findMessageHoard(bus, maxBytes),
    /** The device with most retained messages, beyond the quota. */
    findRetainedHoard: () => findRetainedHoard(bus, { maxBytes, maxMessages: maxRetainedMessages }),
    /** Clears retained messages that a device published itself; returns how many. */
    async clearRetained(deviceId: string): Promise<number> {
      const { topics } = await listRetainedTopics(bus, deviceId, clearBatchSize);
      const own = topics.filter((topic) => topic !== deviceTopics.shadowDelta(deviceId));
      await clearRetainedMessages(link, own, signal);
      return own.length;
    },
  };
}

/** Publications in flight at one time: deltas of other devices use the same connection. */
const batchSize = 128;

/**
 * Clears retained messages by empty ones at QoS 0; the acknowledgement of the last one of a batch covers all. Records
 * are cleared at QoS 1: `data` dates a QoS 0 message by its arrival, after which a new device of the id may exist.
 */
export async function clearRetainedMessages(
  link: Pick<MqttLink, "publish">,
  topics: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (let at = 0; at < topics.length; at += batchSize) {
    signal.throwIfAborted();
    const batch = topics.slice(at, at + batchSize);
    await Promise.all(
      batch.map((topic, index) => {
        const qos = index === batch.length - 1 || topic.startsWith(`${recordRoot}/`) ? 1 : 0;
        return link.publish(topic, "", { retain: true, qos });
      }),
    );
  }
}
