import type { Bus } from "@devmesh/service-kit/bus";
import { findStream, streamManager } from "@devmesh/service-kit/connection/streams";
import { subjectToken } from "@devmesh/service-kit/subjects";
import { z } from "zod";
import { mqttRetainedPrefix, mqttRetainedStream } from "./broker-subjects.ts";
import { deviceOfSubject, isRetainedByMesh, subjectsOfDevice, topicLevels } from "./device-topic.ts";
import { findTopPublisher } from "./top-publisher.ts";

/** How long the broker may take to list a page, in milliseconds: it sorts all subjects of the device for it. */
const listMs = 20_000;

/** Some of a device's retained messages. */
export interface RetainedTopics {
  /** At most as many as asked for, and as the broker lists at once (100,000). */
  readonly topics: readonly string[];
  /** How many there are of the kind that is listed. */
  readonly total: number;
}

const SubjectsPage = z.object({
  error: z.object({ code: z.int(), description: z.string().default("") }).optional(),
  total: z.int().default(0),
  state: z.object({ subjects: z.record(z.string(), z.unknown()).nullish() }).optional(),
});

/**
 * One page of the MQTT topics of a device with a retained message. To clear one, publish an empty retained
 * message: a purge of the stream leaves it in the memory of nats-server.
 */
export async function listRetainedTopics(
  bus: Bus,
  deviceId: string,
  maxTopics = Number.POSITIVE_INFINITY,
): Promise<RetainedTopics> {
  const id = subjectToken(deviceId, "device id");
  for (const below of subjectsOfDevice(id)) {
    // Not `streams.info` of the client library, which collects all pages.
    const query = JSON.stringify({ subjects_filter: `${mqttRetainedPrefix}${below}` });
    const answer = await bus.request(`$JS.API.STREAM.INFO.${mqttRetainedStream}`, query, {
      timeoutMs: listMs,
    });
    const { error, total, state } = SubjectsPage.parse(answer.json());
    if (error?.code === 404) break;
    if (error !== undefined) throw new Error(`the retained messages cannot be listed: ${error.description}`);
    const topics = Object.keys(state?.subjects ?? {})
      .slice(0, maxTopics)
      .map(topicOf);
    if (topics.length > 0) return { topics, total: Math.max(total, topics.length) };
  }
  return { topics: [], total: 0 };
}

/** Bounds of what devices retain in all. */
export interface RetainedLimits {
  readonly maxBytes: number;
  /** Of one device. The search finds a device that has at least a quarter of all. */
  readonly maxMessages: number;
}

/**
 * The device that retains most, when all have more than `maxBytes` or that one more than `maxMessages`. Deltas of
 * shadows do not count, since the mesh publishes them.
 */
export async function findRetainedHoard(
  bus: Bus,
  { maxBytes, maxMessages }: RetainedLimits,
): Promise<string | null> {
  const manager = await streamManager(bus);
  const info = await findStream(manager, mqttRetainedStream);
  if (info === null) return null;
  const { bytes, messages, first_seq, last_seq } = info.state;
  const where = {
    stream: mqttRetainedStream,
    prefix: mqttRetainedPrefix,
    between: [first_seq, last_seq],
    deviceOf: retainerOf,
  } as const;
  if (bytes > maxBytes) return await findTopPublisher(manager, where);
  if (messages <= maxMessages) return null;
  return await findTopPublisher(manager, {
    ...where,
    weightOf: () => 1,
    leastShareOfOne: Math.max(0.25, maxMessages / messages),
  });
}

function retainerOf(subject: string): string | null {
  return isRetainedByMesh(subject) ? null : deviceOfSubject(subject);
}

/** Unlike a message, a topic to be cleared may hold wildcards: on MQTT they are letters. */
function topicOf(subject: string): string {
  const tokens = subject.slice(mqttRetainedPrefix.length).split(".");
  return tokens.map((token) => topicLevels(token)?.[0] ?? token).join("/");
}
