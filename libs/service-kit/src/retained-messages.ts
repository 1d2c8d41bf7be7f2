import type { Bus } from "./bus.ts";
import { topicLevels } from "./device-topic.ts";
import { heaviestDevice } from "./heaviest-device.ts";
import { findStream, streamManager } from "./streams.ts";
import { mqttRetainedPrefix, mqttRetainedStream, subjectToken } from "./subjects.ts";

/**
 * MQTT topics below `ID/` and `db/ID/` of which the broker holds a retained message, as its stream has them: what a
 * single server has in memory may be behind. To clear one, publish an empty retained message on it.
 */
export async function listRetainedTopics(bus: Bus, deviceId: string): Promise<readonly string[]> {
  const id = subjectToken(deviceId, "device id");
  const manager = await streamManager(bus);
  const topics: string[] = [];
  for (const below of [`${id}.>`, `db.${id}`, `db.${id}.>`]) {
    const options = { subjects_filter: `${mqttRetainedPrefix}${below}` };
    const info = await findStream(manager, mqttRetainedStream, options);
    topics.push(...Object.keys(info?.state.subjects ?? {}).map(topicOf));
  }
  return topics;
}

/**
 * The device that retains most, when the broker holds more than `maxBytes` of retained messages; deltas of shadows do not count, since
 * the mesh publishes them. Null when there is none.
 */
export async function findRetainedHoard(bus: Bus, maxBytes: number): Promise<string | null> {
  const manager = await streamManager(bus);
  const info = await findStream(manager, mqttRetainedStream);
  if (info === null || info.state.bytes <= maxBytes) return null;
  return await heaviestDevice(manager, {
    stream: mqttRetainedStream,
    prefix: mqttRetainedPrefix,
    between: [info.state.first_seq, info.state.last_seq],
    deviceOf: retainerOf,
  });
}

function retainerOf(subject: string): string | null {
  const [first = "", second = "", ...rest] = subject.split(".");
  if (first === "db") return second;
  return second === "shadow" && rest.join(".") === "delta" ? null : first;
}

/** Unlike a message, a topic to be cleared may hold wildcards: on MQTT they are letters. */
function topicOf(subject: string): string {
  const tokens = subject.slice(mqttRetainedPrefix.length).split(".");
  return tokens.map((token) => topicLevels(token)?.[0] ?? token).join("/");
}
