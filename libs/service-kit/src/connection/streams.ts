import {
  type ApiError,
  type ConsumerConfig,
  type ConsumerInfo,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
  type StreamInfoRequestOptions,
} from "@nats-io/jetstream";
import { headers as createHeaders, type MsgHdrs, nanos } from "@nats-io/nats-core";
import { systemClock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import { retry } from "../retry.ts";
import {
  allEvents,
  deadLetterStream,
  deadSubject,
  eventsStream,
  historyStreams,
  outbox,
  queueStream,
  queueSubject,
} from "../subjects.ts";
import { assertConnected, type Bus } from "./bus.ts";
import { natsConnection } from "./nats-connection.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const megabyte = 1024 * 1024;

type WantedStream = Pick<StreamConfig, "name" | "subjects"> & Partial<StreamConfig>;

/** The stream that keeps each event for one hour, for replay (ADR 20); at most 256 MB, the oldest go first. */
export async function ensureEventsStream(bus: Bus): Promise<void> {
  await ensureStream(bus, {
    name: eventsStream,
    subjects: [allEvents],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(hour),
    max_bytes: 256 * megabyte,
    duplicate_window: nanos(2 * minute),
  });
}

/** The stream of a queue's waiting jobs; at most 256 MB, then new jobs are refused rather than old ones lost. */
export async function ensureQueueStream(bus: Bus, queue: string): Promise<void> {
  await ensureStream(bus, {
    name: queueStream(queue),
    subjects: [queueSubject(queue)],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    max_bytes: 256 * megabyte,
    duplicate_window: nanos(hour),
  });
}

/** What bounds each stream of what the gateways keep together; the oldest messages go first. */
const historyBounds = {
  /** A day of minutes. */
  mesh: { max_age: nanos(day), max_msgs_per_subject: 24 * 60, max_msgs: -1 },
  /** Those of some twenty gateways that have ended meanwhile. */
  changes: { max_age: nanos(30 * day), max_msgs_per_subject: 1, max_msgs: 1_000 },
};

/** A stream of what the gateways keep together. */
export async function ensureHistoryStream(bus: Bus, name: keyof typeof historyStreams): Promise<void> {
  const { stream, subjects } = historyStreams[name];
  await ensureStream(bus, {
    name: stream,
    subjects: [subjects],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    allow_direct: true,
    duplicate_window: nanos(10 * minute),
    ...historyBounds[name],
  });
}

/** Stream of a queue's dead letters: 30 days, at most 64 MB. */
export async function ensureDeadLetterStream(bus: Bus, queue: string): Promise<void> {
  await ensureDeadStream(bus, deadLetterStream(queue), deadSubject(queue));
}

async function ensureDeadStream(bus: Bus, name: string, subject: string): Promise<void> {
  await ensureStream(bus, {
    name,
    subjects: [subject],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(30 * day),
    max_bytes: 64 * megabyte,
    duplicate_window: nanos(day),
  });
}

/**
 * The stream of what waits for webhooks: each event is kept while a consumer wants it, 48 h at most. What was given up
 * is kept as that of a queue. `firstSequence` is that of the first event to source where the broker does not know what
 * it has sourced; without it, it would begin at the time of the last message, and skip events stored before that.
 */
export async function ensureOutboxStreams(bus: Bus, maxBytes: number, firstSequence: number): Promise<void> {
  await ensureEventsStream(bus);
  await ensureStream(bus, {
    name: outbox.stream,
    subjects: [outbox.allSubjects],
    sources: [{ name: eventsStream, opt_start_seq: firstSequence }],
    retention: RetentionPolicy.Interest,
    // Sourcing waits for room; events dropped here would be lost without a gap.
    discard: DiscardPolicy.New,
    max_age: nanos(2 * day),
    max_bytes: maxBytes,
    duplicate_window: nanos(2 * minute),
  });
  await ensureDeadStream(bus, outbox.dead, outbox.allDead);
}

/** How long a stream may take to acknowledge a message, in milliseconds. */
const storeMs = 2_000;

/** What may go along with a message that a stream stores. */
export interface StoreOptions {
  readonly headers?: MsgHdrs;
  /** A second message with the same id, within a time that the stream sets, is not stored again. */
  readonly dedupeId?: string | undefined;
  /** Less than two seconds, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Resolves when the stream of the subject has stored a message; throws `unavailable` when that is not known. Sent as a
 * request of the bus: messages of one turn leave in one write.
 */
export async function storeMessage(
  bus: Bus,
  subject: string,
  payload: string | Uint8Array,
  { headers = createHeaders(), dedupeId, timeoutMs = storeMs }: StoreOptions = {},
): Promise<void> {
  assertConnected(bus);
  try {
    if (dedupeId !== undefined) headers.set("Nats-Msg-Id", dedupeId);
    const answer = await bus.request(subject, payload, {
      timeoutMs: Math.max(1, Math.min(storeMs, timeoutMs)),
      headers,
    });
    const { error } = answer.json<{ error?: ApiError }>();
    if (error !== undefined) throw new JetStreamApiError(error);
  } catch (cause) {
    throw ServiceError.of("unavailable", { cause });
  }
}

/**
 * Requests to JetStream's API with a timeout, without those that need a permission on the account. Without a leader
 * nobody answers: prefer retries to long timeouts.
 */
export function streamManager(bus: Bus, timeoutMs = 5_000): Promise<JetStreamManager> {
  return jetstreamManager(bus[natsConnection], { checkAPI: false, timeout: timeoutMs });
}

/** Whether the stream, consumer or message does not exist. */
export function isMissing(error: unknown): boolean {
  return (
    error instanceof JetStreamApiError &&
    (error.status === 404 || error.code === JetStreamApiCodes.NoMessageFound)
  );
}

/** Info of a stream; null when it does not exist. */
export async function findStream(
  manager: JetStreamManager,
  name: string,
  options?: Partial<StreamInfoRequestOptions>,
): Promise<StreamInfo | null> {
  try {
    return await manager.streams.info(name, options);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Creates or updates a stream; safe in several replicas at once. */
export async function ensureStream(bus: Bus, wanted: WantedStream): Promise<void> {
  const config: WantedStream = { storage: StorageType.File, num_replicas: bus.streamReplicas, ...wanted };
  await onceAvailable(bus, async (manager) => {
    const existing = await findStream(manager, config.name);
    if (existing === null) {
      await manager.streams.add(config);
      return;
    }
    const current: Record<string, unknown> = { ...existing.config };
    const differs = Object.entries(config).some(
      ([member, value]) => JSON.stringify(current[member]) !== JSON.stringify(value),
    );
    if (differs) await manager.streams.update(config.name, config);
  });
}

/** Creates or updates a durable consumer; safe in several replicas at once. Resolves to what the broker has then. */
export async function ensureConsumer(
  bus: Bus,
  stream: string,
  config: Partial<ConsumerConfig> & { readonly durable_name: string },
): Promise<ConsumerInfo> {
  return await onceAvailable(bus, async (manager) => {
    try {
      return await manager.consumers.add(stream, config);
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== consumerAlreadyExists) throw error;
      return await manager.consumers.update(stream, config.durable_name, config);
    }
  });
}

/** JetStream's error code for too few servers to keep the copies; others of the cluster may be on their way up. */
const noSuitablePeers = 10_005;

/** How long JetStream may take to start after the broker accepts connections, in milliseconds. */
const availableWithinMs = 30_000;

/** Repeats `work` while JetStream is starting, has no leader or too few servers; a refusal rejects at once. */
async function onceAvailable<T>(bus: Bus, work: (manager: JetStreamManager) => Promise<T>): Promise<T> {
  const manager = await streamManager(bus);
  const giveUpAt = systemClock.monotonicMs() + availableWithinMs;
  return await retry(() => work(manager), {
    firstMs: 250,
    longestMs: 250,
    isRetried(error) {
      const refused =
        error instanceof JetStreamApiError && error.status < 500 && error.code !== noSuitablePeers;
      if (refused || bus[natsConnection].isClosed() || systemClock.monotonicMs() > giveUpAt) return false;
      bus.log.debug({ err: error }, "JetStream is not available yet");
      return true;
    },
  });
}

/** JetStream's error code for a consumer of that name with another configuration. */
const consumerAlreadyExists = 10_148;
