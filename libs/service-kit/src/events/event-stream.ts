import type { EventSubscription } from "@devmesh/contracts/topology";
import { AckPolicy, DeliverPolicy, JetStreamApiError, ReplayPolicy } from "@nats-io/jetstream";
import { nanos, nuid } from "@nats-io/nats-core";
import { type Bus, pause } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import { createPuller, type PulledMessage, type Puller } from "../connection/pull.ts";
import { isMissing, streamManager } from "../connection/streams.ts";
import { ServiceError } from "../errors.ts";
import { eventSubject, eventsNamed, eventsStream } from "../subjects.ts";

/** How long one request for events waits, in milliseconds; they are handed over as they come. */
const pollMs = 30_000;
/** Reads events that exist already: the first ones end it. */
const presentMs = 100;
/** Most events of one request, and most bytes: one event of the broker's `max_payload` must fit. */
const batchSize = 500;
const batchBytes = 1_280 * 1024;
/** How long JetStream may take for one answer, in milliseconds. */
const answerMs = 1_500;
/** The broker drops a consumer that was not pulled from for this long, in milliseconds. */
const forgottenAfterMs = 30_000;
/** Wait before the stream is read again, in milliseconds. */
const retryMs = 250;
/** How many times in a row a replay may find nothing where there must be something. */
const maxFailures = 8;

/** An event as the stream keeps it. */
export interface StreamedEvent {
  /** Sequence in the stream; ascends, with gaps. */
  readonly sequence: number;
  readonly service: string;
  readonly name: string;
  readonly key: string;
  /** JSON, by the schema of the event's declaration; not checked yet. */
  readonly payload: Uint8Array;
}

/** Where in the stream a reader stands. */
export interface StreamPosition {
  /** The last sequence read, or passed. */
  readonly after: number;
  /** Events after the requested position are gone, or the stream is another one. */
  readonly gap: boolean;
}

/** What following hands over, in the stream's order. */
export interface EventFollower {
  /** The start, and again after lost events. A new stream has new sequences. */
  began(position: StreamPosition): void;
  /** Not empty. The next pull follows its return. */
  events(batch: readonly StreamedEvent[]): void;
}

/**
 * Follows events from now on, each exactly once, across reconnects and elections. Waits for a missing stream. Resolves
 * when `signal` aborts or the bus is closed.
 */
export async function followEvents(
  bus: Bus,
  subscriptions: readonly EventSubscription[],
  follower: EventFollower,
  signal: AbortSignal,
): Promise<void> {
  // Set below, by what is handed over.
  let position = null as number | null;
  let created: string | null = null;
  const filters = filtersOf(subscriptions, undefined);
  while (!signal.aborted && !bus[natsConnection].isClosed()) {
    await using reader = await openReader(bus, filters, { after: position, created }, signal);
    if (reader === null) {
      await pause(bus, retryMs, signal);
      continue;
    }
    created = reader.created;
    if (position === null || reader.start.gap) follower.began(reader.start);
    position = reader.start.after;
    await reader.follow((events) => {
      position = events.at(-1)?.sequence ?? position;
      follower.events(events);
    }, signal);
  }
}

/** Which stored events to read. */
export interface ReplayOptions {
  /** The last known sequence; reading begins after it. */
  readonly after: number;
  /** Last sequence to read, inclusive; evaluated before each batch. */
  readonly until: () => number;
  /** Only events about this, such as a device id; undefined for all. */
  readonly about: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Reads stored events in order. The first batch is empty and holds the start position. Throws `unavailable` when the
 * stream cannot be read.
 */
export async function* replayEvents(
  bus: Bus,
  subscriptions: readonly EventSubscription[],
  { after, until, about, signal }: ReplayOptions,
): AsyncGenerator<{ readonly position: StreamPosition; readonly events: readonly StreamedEvent[] }> {
  const filters = filtersOf(subscriptions, about);
  let position = after;
  let created: string | null = null;
  let failures = 0;
  let first = true;
  while (!signal.aborted && (first || position < until())) {
    if (failures > maxFailures)
      throw ServiceError.of("unavailable", { cause: new Error("the stream of events cannot be read") });
    await using reader = await openReader(bus, filters, { after: position, created }, signal);
    if (reader === null) {
      failures++;
      await pause(bus, retryMs, signal);
      continue;
    }
    created = reader.created;
    position = reader.start.after;
    if (first || reader.start.gap) yield { position: reader.start, events: [] };
    first = false;
    while (position < until()) {
      // The rest of the stream holds no matching event.
      if (reader.pending === 0) return;
      const events = await reader.read(presentMs, signal);
      if (events === null) break;
      if (events.length === 0) {
        // Late, or no longer stored: a new reader finds out.
        failures++;
        break;
      }
      failures = 0;
      position = events.at(-1)?.sequence ?? position;
      yield { position: { after: position, gap: false }, events };
    }
  }
}

interface EventReader extends AsyncDisposable {
  readonly start: StreamPosition;
  /** When the stream was created: a new one has new sequences. */
  readonly created: string;
  /** Events left, as last reported by the broker. */
  readonly pending: number;
  /** The next events, none when there are none in time; null when the reader has to be opened again. */
  read(waitMs: number, signal: AbortSignal): Promise<readonly StreamedEvent[] | null>;
  /** Passes events on as they arrive; resolves when the reader must be opened again. */
  follow(take: (events: readonly StreamedEvent[]) => void, signal: AbortSignal): Promise<void>;
}

/** Creates a consumer after the position; null when the stream cannot be read. */
async function openReader(
  bus: Bus,
  filters: readonly string[],
  from: { readonly after: number | null; readonly created: string | null },
  signal: AbortSignal,
): Promise<EventReader | null> {
  if (!bus.connected || signal.aborted) return null;
  const consumer = `${bus.name}-${nuid.next()}`;
  try {
    const manager = await streamManager(bus, answerMs);
    const { state, created } = await manager.streams.info(eventsStream);
    const start = startIn(
      state,
      from.created !== null && from.created !== created ? null : from.after,
      from.after !== null,
    );
    const { num_pending } = await manager.consumers.add(eventsStream, {
      name: consumer,
      filter_subjects: [...filters],
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: start.after + 1,
      replay_policy: ReplayPolicy.Instant,
      // Nothing is delivered twice to a reader that counts what it gets, and opens another where one is missing.
      ack_policy: AckPolicy.None,
      max_deliver: 1,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanos(forgottenAfterMs),
    });
    return createReader(bus, consumer, { start, created, pending: num_pending });
  } catch (error) {
    const refused = error instanceof JetStreamApiError && error.status < 500 && !isMissing(error);
    bus.log[refused ? "warn" : "debug"]({ err: error }, "the stream of events cannot be read");
    return null;
  }
}

function startIn(
  { first_seq, last_seq }: { readonly first_seq: number; readonly last_seq: number },
  after: number | null,
  resumes: boolean,
): StreamPosition {
  // An empty stream counts from 0.
  const beginning = Math.max(0, first_seq - 1);
  // Another stream than before: all of it is new.
  if (after === null) return resumes ? { after: beginning, gap: true } : { after: last_seq, gap: false };
  if (after > last_seq) return { after: last_seq, gap: true };
  return after < beginning ? { after: beginning, gap: true } : { after, gap: false };
}

function createReader(
  bus: Bus,
  consumer: string,
  { start, created, pending }: Pick<EventReader, "start" | "created" | "pending">,
): EventReader {
  const puller: Puller = createPuller(bus, eventsStream, consumer);
  let delivered = 0;
  let left = pending;
  let broken = false;
  return {
    start,
    created,
    get pending() {
      return left;
    },
    async read(waitMs, signal) {
      if (broken) return null;
      const request = { batch: batchSize, maxBytes: batchBytes, expiresMs: waitMs, untilAny: true };
      const { messages, failure } = await puller.pull(request, signal);
      const whole = messages.every(({ deliverySequence }, at) => deliverySequence === delivered + at + 1);
      if (!whole || signal.aborted) return null;
      delivered += messages.length;
      left = messages.at(-1)?.pending ?? left;
      // The received events are complete; what follows may be lost.
      broken = failure !== null;
      return broken && messages.length === 0 ? null : messages.map(streamed);
    },
    async follow(take, signal) {
      const ending = new AbortController();
      const either = AbortSignal.any([signal, ending.signal]);
      let waiting: StreamedEvent[] = [];
      const handOver = () => {
        const events = waiting;
        waiting = [];
        if (events.length > 0 && !signal.aborted) take(events);
      };
      const onMessage = (message: PulledMessage) => {
        if (message.deliverySequence !== delivered + 1) ending.abort();
        if (either.aborted) return;
        delivered++;
        if (waiting.length === 0) setImmediate(handOver);
        waiting.push(streamed(message));
      };
      while (!either.aborted) {
        const { failure } = await puller.pull({ batch: batchSize, expiresMs: pollMs, onMessage }, either);
        if (failure !== null) break;
      }
      handOver();
    },
    async [Symbol.asyncDispose]() {
      puller.close();
      if (!bus.connected || bus[natsConnection].isClosed()) return;
      const manager = await streamManager(bus, answerMs);
      // Otherwise the broker drops it after a while.
      await manager.consumers.delete(eventsStream, consumer).catch(() => undefined);
    },
  };
}

/** Subject `event.<service>.<name>.<key>`. */
function streamed({ subject, payload, sequence }: PulledMessage): StreamedEvent {
  const [, service = "", name = "", key = ""] = subject.split(".");
  return { sequence, service, name, key, payload };
}

function filtersOf(subscriptions: readonly EventSubscription[], about: string | undefined): string[] {
  return subscriptions.flatMap(({ events: { service, events }, names }) =>
    names.map((name) => {
      const keeping = events[name] ?? {};
      return about === undefined
        ? eventsNamed(service, name, keeping)
        : eventSubject(service, name, about, keeping);
    }),
  );
}
