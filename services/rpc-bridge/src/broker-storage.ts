import type { Bus } from "@devmesh/service-kit/bus";
import { dropHeldBacklog, dropHeldMessages } from "@devmesh/service-kit/held-messages";
import { listKeptSessions } from "@devmesh/service-kit/kept-sessions";
import { findRetainedHoard, listRetainedTopics } from "@devmesh/service-kit/retained-messages";
import { dropSessionBacklog } from "@devmesh/service-kit/session-backlog";
import type { BrokerRoomOptions } from "./broker-room.ts";
import { clearRetainedMessage } from "./clear-retained-message.ts";
import { deviceTopics } from "./device-topics.ts";
import type { MqttLink } from "./mqtt-link.ts";
import type { WipeDeviceOptions } from "./wipe-device.ts";

/**
 * The part of `DEVICE_STREAM_MAX_BYTES` beyond which what waits for kept sessions alone is dropped. Retained messages, and those at
 * QoS 2 that were never released, which the broker stores apart, may take as much each.
 */
const deviceShare = 0.5;

/** Retained messages of a hoarder that are cleared before the broker is asked again. */
const clearedAtOnce = 1_000;

/** What the broker stores of devices: looked up, and taken away. */
type BrokerStorage = Pick<WipeDeviceOptions, "keptSessions" | "retainedTopics" | "dropHeld"> &
  Pick<BrokerRoomOptions, "dropBacklog" | "findRetainedHoard" | "clearRetained">;

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
      const kept = await listKeptSessions(bus, asked);
      return kept.filter((session) => session.deviceId === deviceId).map(({ clientId }) => clientId);
    },
    retainedTopics: (deviceId) => listRetainedTopics(bus, deviceId),
    dropHeld: (deviceId, clientIds) => dropHeldMessages(bus, deviceId, clientIds),
    async dropBacklog() {
      const ofSessions = await dropSessionBacklog(bus, { maxBytes, signal });
      const unreleased = await dropHeldBacklog(bus, maxBytes);
      return unreleased === null ? ofSessions : [...ofSessions, unreleased];
    },
    findRetainedHoard: () => findRetainedHoard(bus, maxBytes),
    async clearRetained(deviceId) {
      const topics = await listRetainedTopics(bus, deviceId);
      const own = topics.filter((topic) => topic !== deviceTopics.delta(deviceId)).slice(0, clearedAtOnce);
      await Promise.all(own.map((topic) => clearRetainedMessage(link, topic)));
      return own.length;
    },
  };
}
