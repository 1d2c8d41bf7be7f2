import type { Bus } from "@devmesh/service-kit/bus";
import { systemClock } from "@devmesh/service-kit/clock";
import type { PulledMessage, Puller } from "@devmesh/service-kit/connection/pull";
import { isMissing, streamManager } from "@devmesh/service-kit/connection/streams";
import { nanos } from "@nats-io/nats-core";
import { type DeviceConsumer, mqttStream } from "./broker-subjects.ts";

/** Wait for messages before the count of unacknowledged ones is read again, in milliseconds. */
const pollMs = 250;
/** How long after `ack_wait` the broker may take to deliver messages again, in milliseconds. */
const marginMs = 500;

/** What bounds the gathering of abandoned messages. */
export interface GatherOptions {
  /** Most bytes to hold; beyond it gathering ends. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * For a replica that has just become the active one: adds to `held` what its predecessor left unacknowledged, in stream
 * order, so that nothing newer overtakes it. That takes up to `ack_wait`; it ends early when the bus is lost.
 */
export async function gatherAbandonedMessages(
  bus: Bus,
  durable: DeviceConsumer,
  puller: Puller,
  held: PulledMessage[],
  { maxBytes, signal }: GatherOptions,
): Promise<void> {
  const startedAt = systemClock.monotonicMs();
  while (!signal.aborted) {
    const out = await readOutstanding(bus, durable);
    if (out === "missing") break;
    const weight = held.reduce((sum, { payload }) => sum + payload.length, 0);
    if (out === "unknown") {
      await systemClock.sleep(pollMs, signal).catch(() => undefined);
      continue;
    }
    const waitedMs = systemClock.monotonicMs() - startedAt;
    const missing = out.messages - held.length;
    if (missing <= 0 || waitedMs >= out.ackWaitMs + marginMs || weight >= maxBytes) break;
    const more = await puller.pull({ batch: missing, maxBytes, expiresMs: pollMs }, signal);
    held.push(...more.messages);
    if (more.failure !== null) break;
    // Without a pin nothing was waited for.
    if (!puller.isPinned) await systemClock.sleep(pollMs, signal).catch(() => undefined);
  }
  held.sort((one, other) => one.sequence - other.sequence);
}

async function readOutstanding(bus: Bus, durable: string) {
  try {
    const manager = await streamManager(bus);
    const { num_ack_pending, config } = await manager.consumers.info(mqttStream, durable);
    return { messages: num_ack_pending, ackWaitMs: (config.ack_wait ?? 0) / nanos(1) };
  } catch (error) {
    if (isMissing(error)) return "missing";
    bus.log.debug({ err: error, durable }, "the consumer of device messages cannot be asked");
    return "unknown";
  }
}
