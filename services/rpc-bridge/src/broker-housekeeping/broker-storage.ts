import { readSessions } from "@devmesh/device-broker/persistent-sessions";
import { dropQos2Backlog, dropQos2Messages } from "@devmesh/device-broker/qos2-inbox";
import { findRetainedHoard, listRetainedTopics } from "@devmesh/device-broker/retained-messages";
import { dropSessionBacklog, findMessageHoard } from "@devmesh/device-broker/session-backlog";
import type { Bus } from "@devmesh/service-kit/bus";
import { deviceOfSession, deviceTopics } from "../device-topics.ts";
import type { MqttLink } from "../mqtt-link.ts";
import { clearRetainedMessages } from "./clear-retained-messages.ts";
import type { BrokerRoomOptions } from "./storage-quota.ts";
import type { WipeDeviceOptions } from "./wipe-device.ts";

/**
 * The part of `DEVICE_STREAM_MAX_BYTES` beyond which what waits for kept sessions alone is dropped. Retained
 * messages, and those at QoS 2 that were never released, which the broker stores apart, may take as much each.
 */
const deviceShare = 0.5;

/** Retained messages of one device beyond which they are cleared: nats-server keeps each topic in its memory. */
const maxRetainedMessages = 10_000;

/** Retained messages of a hoarder that are cleared before the broker is asked again. */
const clearedAtOnce = 10_000;

/** What the broker stores of devices: looked up, and taken away. */
type BrokerStorage = Pick<WipeDeviceOptions, "keptSessions" | "retainedTopics" | "dropHeld"> &
  Pick<BrokerRoomOptions, "dropBacklog" | "findMessageHoard" | "findRetainedHoard" | "clearRetained">;

/** What {@link createBrokerStorage} needs. */
export interface BrokerStorageOptions {
  /** Connection to account DEVICES. */
  readonly bus: Bus;
  /** Clears retained messages. */
  readonly link: Pick<MqttLink, "publish">;
  /** What the broker keeps of acknowledged messages, in bytes: `DEVICE_STREAM_MAX_BYTES`. */
  readonly streamBytes: number;
  readonly signal: AbortSignal;
}

/** The storage of the broker that `bus` and `link` lead to. */
export function createBrokerStorage({ bus, link, streamBytes, signal }: BrokerStorageOptions): BrokerStorage {
  const maxBytes = streamBytes * deviceShare;
  return {
    async keptSessions(deviceId, asked) {
      const clientIds: string[] = [];
      for await (const session of readSessions(bus, 1, asked))
        if (!session.clean && deviceOfSession(session) === deviceId) clientIds.push(session.clientId);
      return clientIds;
    },
    retainedTopics: (deviceId) => listRetainedTopics(bus, deviceId),
    dropHeld: (deviceId, clientIds) => dropQos2Messages(bus, deviceId, clientIds),
    async dropBacklog() {
      const ofSessions = await dropSessionBacklog(bus, { maxBytes, signal });
      const unreleased = await dropQos2Backlog(bus, maxBytes);
      return unreleased === null ? ofSessions : [...ofSessions, unreleased];
    },
    findMessageHoard: () => findMessageHoard(bus, maxBytes),
    findRetainedHoard: () => findRetainedHoard(bus, { maxBytes, maxMessages: maxRetainedMessages }),
    async clearRetained(deviceId) {
      const { topics } = await listRetainedTopics(bus, deviceId, clearedAtOnce);
      const own = topics.filter((topic) => topic !== deviceTopics.delta(deviceId));
      await clearRetainedMessages(link, own, signal);
      return own.length;
    },
  };
}
