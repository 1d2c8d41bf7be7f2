import { recordRoot } from "@devmesh/contracts/model/device-id";
import type { Bus } from "@devmesh/service-kit/bus";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import type { ConsumerInfo } from "@nats-io/jetstream";
import { bridgeConsumers, mqttStream, mqttStreamPrefix } from "./broker-subjects.ts";
import { deviceOfSubject } from "./device-topic.ts";
import { findTopPublisher } from "./top-publisher.ts";

/** What was dropped for one device. */
export interface DroppedBacklog {
  readonly deviceId: string;
  readonly messages: number;
}

/** How {@link dropSessionBacklog} bounds the broker's stream. */
export interface SessionBacklogOptions {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** Rounds before what is still too much waits for the next time. */
const maxRounds = 20;

/**
 * Keeps room in the broker's stream: an abandoned persistent session keeps its messages for ever, and a full stream
 * acknowledges nothing. Above `maxBytes`, drops what only sessions wait for, of the device with most bytes first. What
 * services have not handled yet is never dropped. Rejects when the broker cannot be read.
 */
export async function dropSessionBacklog(
  bus: Bus,
  { maxBytes, signal }: SessionBacklogOptions,
): Promise<readonly DroppedBacklog[]> {
  const manager = await streamManager(bus);
  const dropped: DroppedBacklog[] = [];
  for (let round = 0; round < maxRounds && !signal.aborted; round++) {
    // Before the consumers: what was stored in between has not been handled.
    const { state } = await manager.streams.info(mqttStream);
    if (state.bytes <= maxBytes) break;
    // Of all that devices may subscribe to and services take; records no session can hold.
    const consumers = await Promise.all(
      bridgeConsumers.map((name) => manager.consumers.info(mqttStream, name)),
    );
    const handled = Math.min(...consumers.map((info) => handledUpTo(info, state.last_seq)));
    const deviceId = await findTopPublisher(manager, {
      stream: mqttStream,
      prefix: mqttStreamPrefix,
      between: [state.first_seq, handled],
      deviceOf: subscriberOf,
    });
    if (deviceId === null) break;
    const filter = `${mqttStreamPrefix}${deviceId}.>`;
    const { purged } = await manager.streams.purge(mqttStream, { filter, seq: handled + 1 });
    dropped.push({ deviceId, messages: purged });
  }
  return dropped;
}

/**
 * The device with most bytes in the broker's stream, when that holds more than `maxBytes` and the device a quarter of
 * it. Null otherwise, such as when the whole fleet waits for a stopped service.
 */
export async function findMessageHoard(bus: Bus, maxBytes: number): Promise<string | null> {
  const manager = await streamManager(bus);
  const { state } = await manager.streams.info(mqttStream);
  if (state.bytes <= maxBytes) return null;
  return await findTopPublisher(manager, {
    stream: mqttStream,
    prefix: mqttStreamPrefix,
    between: [state.first_seq, state.last_seq],
    deviceOf: deviceOfSubject,
    leastShareOfOne: 0.25,
  });
}

/** The last sequence up to which services are done with everything that is theirs. */
function handledUpTo(
  { num_pending, num_ack_pending, ack_floor }: ConsumerInfo,
  lastSequence: number,
): number {
  return num_pending === 0 && num_ack_pending === 0 ? lastSequence : ack_floor.stream_seq;
}

/** Records are on their way to storage: devices may not subscribe to them. */
function subscriberOf(subject: string): string | null {
  const [first = ""] = subject.split(".", 1);
  return first === recordRoot ? null : deviceOfSubject(subject);
}
