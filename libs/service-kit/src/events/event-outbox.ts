import type { EventDeclaration } from "@devmesh/contracts/contract";
import { AckPolicy, DeliverPolicy, type StoredMsg, type StreamInfo } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { Bus } from "../connection/bus.ts";
import { createPuller, type PulledMessage, type Puller } from "../connection/pull.ts";
import {
  ensureConsumer,
  ensureOutboxStreams,
  findStream,
  isMissing,
  storeMessage,
  streamManager,
} from "../connection/streams.ts";
import { ServiceError } from "../errors.ts";
import { eventSubject, eventsNamed, eventsStream, outbox } from "../subjects.ts";

/** After this long without a sign of life, another replica takes a message over; in milliseconds. */
const takeoverMs = 30_000;
/** Most messages of a consumer that are being delivered or wait for another attempt. */
const maxPutOff = 1_000;
/** Filters of a consumer whose oldest message is looked for; with more of them it is not known. */
const maxLookedFor = 24;

/** Events that a consumer wants, of one id or of all. */
export interface WantedEvent {
  readonly service: string;
  readonly event: string;
  readonly about?: string;
}

/** What one consumer is to be. */
export interface WantedConsumer {
  readonly id: string;
  /** One of another run is replaced: what waited for it is dropped. */
  readonly run: number;
  /** A later one changes the filters in place. */
  readonly revision: number;
  readonly events: readonly WantedEvent[];
}

/** A consumer as the broker has it. */
export interface FoundConsumer {
  /** When the broker made it, as a time with nanoseconds: another one than that of its predecessor. */
  readonly createdAt: string;
  readonly run: number;
  readonly revision: number;
  /** Since when its receiver may have missed something, as an ISO time; null once that was published. */
  readonly gapFrom: string | null;
  /** Messages that wait, those that are being delivered included. */
  readonly waiting: number;
  /** Storing time of the oldest of them; null without one, or where it is not known. */
  oldest(): Promise<Date | null>;
}

/** A message that was given up, as its stream keeps it. */
export interface StoredLetter {
  readonly sequence: number;
  readonly payload: Uint8Array;
  readonly storedAt: Date;
}

/** The stream `WEBHOOKS`: all events, each kept while a consumer wants it, and messages for one consumer. */
export interface EventOutbox {
  /** Creates the streams, and replaces one whose `EVENTS` was replaced: it would wait for sequences of the former. */
  ensure(): Promise<void>;
  /** Since when the stream of events exists, in base 36: makes ids unique beside a sequence of it. */
  birth(): Promise<string>;
  /** Bytes of what waits as a share of the most. */
  fill(): Promise<number>;
  consumers(): Promise<ReadonlyMap<string, FoundConsumer>>;
  /**
   * Makes or changes a consumer. With `gapFrom` its {@link FoundConsumer.gapFrom} is that. Resolves to its
   * {@link FoundConsumer.createdAt}.
   */
  put(wanted: WantedConsumer, gapFrom: string | null): Promise<string>;
  /** Removes a consumer and what waits for it; also one that is not there. */
  remove(id: string): Promise<void>;
  /** Stores a message for one consumer. Throws `unavailable` unless it is stored. */
  publish(id: string, payload: string, dedupeId: string): Promise<void>;
  puller(id: string): Puller;
  /** Stores what was given up; once for each `dedupeId` in a day. */
  bury(id: string, about: string | null, payload: string, dedupeId: string): Promise<void>;
  /** The first message that was given up after a sequence; null at the end. */
  nextLetter(id: string, after: number): Promise<StoredLetter | null>;
  countLetters(id: string): Promise<number>;
  deleteLetter(sequence: number): Promise<void>;
  /** Deletes what was given up by a consumer, or about a device. */
  purgeLetters(of: { readonly id: string } | { readonly about: string }): Promise<void>;
}

export function createEventOutbox(
  bus: Bus,
  events: Readonly<Record<string, Readonly<Record<string, EventDeclaration>>>>,
  { maxBytes }: { readonly maxBytes: number },
): EventOutbox {
  const { stream, dead } = outbox;
  /** Sequence of the last event that had been sourced one round ago. */
  let sourcedBefore = 0;

  const filtersOf = ({ id, events: wanted }: WantedConsumer): string[] => [
    outbox.subject(id),
    ...wanted.map(({ service, event, about }) => {
      const keeping = events[service]?.[event] ?? {};
      return about === undefined
        ? eventsNamed(service, event, keeping)
        : eventSubject(service, event, about, keeping);
    }),
  ];

  async function nextOf(of: string, seq: number, filter: string): Promise<StoredMsg | null> {
    const manager = await streamManager(bus);
    try {
      return await manager.streams.getMessage(of, { seq, next_by_subj: filter } as never);
    } catch (error) {
      if (isMissing(error)) return null;
      throw ServiceError.of("unavailable", { cause: error });
    }
  }

  async function oldestAfter(acknowledged: number, filters: readonly string[]): Promise<Date | null> {
    if (filters.length > maxLookedFor) return null;
    const found = await Promise.all(filters.map((filter) => nextOf(stream, acknowledged + 1, filter)));
    const times = found.flatMap((message) => (message === null ? [] : [message.time.getTime()]));
    return times.length === 0 ? null : new Date(Math.min(...times));
  }

  return {
    async ensure() {
      const manager = await streamManager(bus);
      // In this order: an event that is stored in between must not look like one that was sourced too early.
      const of = await findStream(manager, stream);
      const from = await findStream(manager, eventsStream);
      const last = from?.state.last_seq ?? 0;
      const source = of && sourceOf(of);
      const isReplaced = source !== null && Math.max(source.sourced, source.first - 1) > last;
      if (isReplaced) await manager.streams.delete(stream);
      // What was sourced a round ago is stored; what was sourced just now may not be when the broker dies.
      const first =
        source === null || isReplaced
          ? last + 1
          : Math.max(source.first, Math.min(source.sourced, sourcedBefore) + 1);
      await ensureOutboxStreams(bus, maxBytes, first);
      sourcedBefore = source?.sourced ?? 0;
    },

    async birth() {
      const { created } = await (await streamManager(bus)).streams.info(eventsStream);
      return Date.parse(created).toString(36);
    },

    async fill() {
      const { state, config } = await (await streamManager(bus)).streams.info(stream);
      return state.bytes / config.max_bytes;
    },

    async consumers() {
      const manager = await streamManager(bus);
      const found = new Map<string, FoundConsumer>();
      for await (const consumer of manager.consumers.list(stream)) {
        const { name, created, config, num_pending, num_ack_pending, ack_floor } = consumer;
        const { run, revision, gap } = config.metadata ?? {};
        const waiting = num_pending + num_ack_pending;
        found.set(name, {
          createdAt: created,
          run: Number(run),
          revision: Number(revision),
          gapFrom: gap || null,
          waiting,
          oldest: async () =>
            waiting === 0 ? null : await oldestAfter(ack_floor.stream_seq, config.filter_subjects ?? []),
        });
      }
      return found;
    },

    async put(wanted, gapFrom) {
      const { id, run, revision } = wanted;
      const { created } = await ensureConsumer(bus, stream, {
        durable_name: id,
        filter_subjects: filtersOf(wanted),
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.New,
        ack_wait: nanos(takeoverMs),
        max_deliver: -1,
        max_ack_pending: maxPutOff,
        metadata: { run: String(run), revision: String(revision), gap: gapFrom ?? "" },
      });
      return created;
    },

    async remove(id) {
      const manager = await streamManager(bus);
      await manager.consumers.delete(stream, id).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
    },

    publish: (id, payload, dedupeId) => storeMessage(bus, outbox.subject(id), payload, { dedupeId }),

    puller: (id) => createPuller(bus, stream, id),

    bury: (id, about, payload, dedupeId) =>
      storeMessage(bus, outbox.deadSubject(id, about), payload, { dedupeId }),

    async nextLetter(id, after) {
      const found = await nextOf(dead, after + 1, outbox.deadOf({ id }));
      return found && { sequence: found.seq, payload: found.data, storedAt: found.time };
    },

    async countLetters(id) {
      const manager = await streamManager(bus);
      const { state } = await manager.streams.info(dead, { subjects_filter: outbox.deadOf({ id }) });
      return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
    },

    async deleteLetter(sequence) {
      await (await streamManager(bus)).streams.deleteMessage(dead, sequence, false);
    },

    async purgeLetters(of) {
      const manager = await streamManager(bus);
      await manager.streams.purge(dead, { filter: outbox.deadOf(of) });
    },
  };
}

/** The last sequence that a stream has sourced, and the first that it sources where that is not known. */
function sourceOf({ sources, config }: StreamInfo): { sourced: number; first: number } {
  const [source] = (sources ?? []) as readonly { readonly seq?: number }[];
  const sourced = source?.seq ?? 0;
  return { sourced, first: config.sources?.[0]?.opt_start_seq ?? sourced + 1 };
}

/** A message that waits for one consumer. */
export type OutboxMessage = PulledMessage;
