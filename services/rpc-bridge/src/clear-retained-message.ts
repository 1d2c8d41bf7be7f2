import type { MqttLink } from "./mqtt-link.ts";

/** No JSON, so that nobody takes it for a message of the device. */
const overwriting = Buffer.from("-");

/**
 * Overwrites a retained message, then clears it: a server of a cluster that has not heard of it yet would not clear it. Who subscribes to
 * the topic hears both.
 */
export async function clearRetainedMessage(link: Pick<MqttLink, "publish">, topic: string): Promise<void> {
  await link.publish(topic, overwriting, { retain: true });
  await link.publish(topic, "", { retain: true });
}
