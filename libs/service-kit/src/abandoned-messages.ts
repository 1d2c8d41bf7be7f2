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
 * For a replica that messages have just begun to come to, and who holds `held` of them: resolves when those come again that were
 * handed to one who died, so that nothing newer overtakes them. At once, with false, when none are out; at the latest when their
 * time to be acknowledged has passed; and when `signal` aborts. Waits for a broker that cannot be asked.
 */
export async function awaitAbandonedMessages(
  bus: Bus,
  durable: keyof typeof deviceConsumers,
  held: number,
  signal: AbortSignal,
): Promise<boolean> {
  const startedAt = systemClock.monotonicMs();
  let someOut = false;
  while (!signal.aborted) {
    const out = await readOutstanding(bus, durable);
    if (out === "missing") break;
    if (out !== "unknown") {
      const waitedMs = systemClock.monotonicMs() - startedAt;
      if (out.messages <= held || waitedMs >= out.ackWaitMs + marginMs) break;
      someOut = true;
    }
    await systemClock.sleep(pollMs, signal).catch(() => undefined);
  }
  return someOut;
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
