import { type Bus, pause } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { ensureConsumer, isMissing, streamManager } from "@devmesh/service-kit/connection/streams";
import { ServiceError } from "@devmesh/service-kit/errors";
import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  StorageType,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { consumerFilter, type DeviceConsumer, mqttStream, replicaGroup } from "./broker-subjects.ts";

/** After this long without a pull the broker pins another replica, in milliseconds. */
export const pinMs = 5_000;
/** The broker delivers a message again when it was not acknowledged for this long; in milliseconds. */
export const ackWaitMs = 10_000;
/** Timeout for the info of the broker's stream, in milliseconds. */
const streamInfoMs = 1_500;

/** Bounds of the broker's own stream of device messages. */
export interface ProvisionDeviceStreamOptions {
  /** When so much is stored and not taken off yet, the broker acknowledges nothing more. Default 1 GB. */
  readonly maxBytes?: number;
  readonly signal: AbortSignal;
}

/**
 * Bounds `$MQTT_msgs`. Waits for the stream, which the broker creates at the first MQTT login. Idempotent; rejects when
 * `signal` aborts, the broker refuses, or the bus is closed.
 */
export async function provisionDeviceStream(
  bus: Bus,
  { maxBytes = 1024 * 1024 * 1024, signal }: ProvisionDeviceStreamOptions,
): Promise<void> {
  const manager = await streamManager(bus);
  for (;;) {
    signal.throwIfAborted();
    if (bus[natsConnection].isClosed())
      throw ServiceError.of("unavailable", { cause: new Error("the bus is closed") });
    if ((await readStreamCreated(bus, signal)) !== null) break;
  }
  const { config } = await manager.streams.info(mqttStream);
  // An acknowledged message must have as many copies as those of all other streams.
  const replicas = Math.max(config.num_replicas, bus.streamReplicas);
  if (
    config.max_bytes !== maxBytes ||
    config.discard !== DiscardPolicy.New ||
    config.num_replicas !== replicas
  ) {
    const wanted = { max_bytes: maxBytes, discard: DiscardPolicy.New, num_replicas: replicas };
    await manager.streams.update(mqttStream, wanted);
  }
}

/**
 * Creates the durable consumer of a service on `$MQTT_msgs`, which must exist. The stream keeps nothing that no
 * consumer wants. Idempotent; rejects when the broker refuses.
 */
export async function ensureDeviceConsumer(bus: Bus, durable: DeviceConsumer): Promise<void> {
  const manager = await streamManager(bus);
  const { config } = await manager.streams.info(mqttStream);
  await ensureConsumer(bus, mqttStream, {
    durable_name: durable,
    filter_subjects: [consumerFilter(durable)],
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: nanos(ackWaitMs),
    max_deliver: -1,
    // A batch and the next one; also the most that waits for `ack_wait` when a replica dies.
    max_ack_pending: 2_000,
    priority_groups: [replicaGroup],
    priority_policy: "pinned_client",
    priority_timeout: nanos(pinMs),
    mem_storage: config.storage === StorageType.Memory,
  });
  await endWithStream(manager, durable);
}

/**
 * Resets a consumer that is ahead of its stream and would skip new messages. nats-server does so itself after a power
 * cut, except for a consumer that was created again with the state of a former one.
 */
async function endWithStream(manager: JetStreamManager, durable: string): Promise<void> {
  const { delivered, ack_floor } = await manager.consumers.info(mqttStream, durable);
  const { state } = await manager.streams.info(mqttStream);
  if (delivered.stream_seq <= state.last_seq) return;
  await manager.consumers.reset(mqttStream, durable, Math.min(ack_floor.stream_seq, state.last_seq) + 1);
}

/** Creation time of `$MQTT_msgs`, RFC 3339; null, after a wait, while it cannot be read. */
export async function readStreamCreated(bus: Bus, signal: AbortSignal): Promise<string | null> {
  try {
    const manager = await streamManager(bus, streamInfoMs);
    return (await manager.streams.info(mqttStream)).created;
  } catch (error) {
    if (!isMissing(error)) bus.log.debug({ err: error }, "the broker's stream cannot be asked");
    await pause(bus, 500, signal);
    return null;
  }
}

/** Number of messages that a consumer has not acknowledged yet. Rejects while it cannot be read. */
export async function deviceBacklog(bus: Bus, durable: DeviceConsumer): Promise<number> {
  const manager = await streamManager(bus);
  const info = await manager.consumers.info(mqttStream, durable);
  return info.num_pending + info.num_ack_pending;
}
