import type { MqttLink } from "../mqtt-link.ts";

/** Publications in flight at one time: deltas of other devices wait for them on the same connection. */
const batchSize = 128;

/**
 * Clears retained messages by empty ones, at QoS 0 but for the last of each batch, whose acknowledgement covers all
 * before it. Below `db/` all are at QoS 1: `data` dates a message at QoS 0 by its arrival, at which a later device of
 * the id may be admitted.
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
        const qos = index === batch.length - 1 || topic.startsWith("db/") ? 1 : 0;
        return link.publish(topic, "", { retain: true, qos });
      }),
    );
  }
}
