import { nanos } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";
import { systemClock } from "./clock.ts";
import { isMissing, streamManager } from "./streams.ts";
import { type deviceConsumers, mqttStream } from "./subjects.ts";

/** How often the broker is asked, in milliseconds. */
const pollMs = 250;
/** What the broker may take, beyond the wait it was told, to make messages available again; in milliseconds. */
const marginMs = 500;

/**
 * Before the first pull of a process: resolves when messages that were handed to one that died come again, so that
 * nothing newer overtakes them. At once when none are out; at the latest when their time to be acknowledged has
 * passed, since other replicas have some out all the time; and when `signal` aborts. Waits for a broker that cannot be asked.
 */
export async function awaitAbandonedMessages(
  bus: Bus,
  durable: keyof typeof deviceConsumers,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = systemClock.monotonicMs();
  while (!signal.aborted) {
    const out = await readOutstanding(bus, durable);
    if (out === "missing") return;
    if (out !== "unknown") {
      const waitedMs = systemClock.monotonicMs() - startedAt;
      if (out.messages === 0 || waitedMs >= out.ackWaitMs + marginMs) return;
    }
    await systemClock.sleep(pollMs, signal).catch(() => undefined);
  }
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
