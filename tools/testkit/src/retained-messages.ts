import { defaultPatienceMs } from "./eventually.ts";
import { connectNats } from "./nats-connection.ts";

/** A user of account DEVICES with nats-server's own rights. */
const privileged = { user: "the-broker-itself", password: "for-tests-only" } as const;

/** Messages without acknowledgement at one time. */
const maxWaiting = 2_000;

/** A configuration that allows {@link storeRetained}. */
export function allowingStoreRetained(config: string): string {
  const entry = `{ user: "${privileged.user}", password: "${privileged.password}" }`;
  return config
    .replace(/(\n {2}DEVICES: \{[^[]*users: \[)/, (found) => `${found} ${entry}`)
    .replace("auth_users: [", (found) => `${found} "${privileged.user}"`);
}

/**
 * Stores a retained message on each topic, much faster than by MQTT: directly in the stream, in the form of older
 * nats-servers. An MQTT client must have connected before, which creates the stream.
 */
export async function storeRetained(port: number, topics: readonly string[]): Promise<void> {
  await using connection = await connectNats({ port, ...privileged });
  let waiting = 0;
  for (const [at, topic] of topics.entries()) {
    const subject = topic.replaceAll("/", ".");
    const message = JSON.stringify({ subject, topic, msg: "eA==", flags: 1 });
    // The stream drops what it cannot queue; one acknowledgement covers all messages before it.
    if (++waiting < maxWaiting && at < topics.length - 1)
      connection.publish(`$MQTT.rmsgs.${subject}`, message);
    else {
      await connection.request(`$MQTT.rmsgs.${subject}`, message, defaultPatienceMs);
      waiting = 0;
    }
  }
}
