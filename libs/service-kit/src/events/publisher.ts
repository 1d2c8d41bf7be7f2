import type { EventDeclaration, EventsDeclaration } from "@devmesh/contracts/contract";
import { jetstream } from "@nats-io/jetstream";
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import type { z } from "zod";
import { assertConnected, type Bus } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import { ensureEventsStream } from "../connection/streams.ts";
import { ServiceError } from "../errors.ts";
import type { CallContext } from "../rpc/context.ts";
import { eventSubject } from "../subjects.ts";
import { formatTraceparent, type TraceContext, traceFields, traceHeader } from "../tracing/trace.ts";
import { messageSpan, recordSpan } from "../tracing/tracer.ts";

/** How long a publication waits for the stream's acknowledgement, in milliseconds. */
const publishTimeoutMs = 2_000;

/** What may go along with an event. */
export interface PublishOptions {
  /** A second publication with the same id within two minutes is not stored again. */
  readonly dedupeId?: string;
  /** The call that led to the event: its trace is passed on and its deadline bounds the wait. */
  readonly call?: CallContext;
}

/** Names of the stored events, or of the live ones. */
type Names<E extends EventsDeclaration, Live extends boolean> = {
  [N in keyof E["events"] & string]: E["events"][N] extends { readonly live: true }
    ? Live extends true
      ? N
      : never
    : Live extends true
      ? never
      : N;
}[keyof E["events"] & string];

type Publications<E extends EventsDeclaration> = {
  readonly [N in Names<E, false>]: (
    payload: z.input<E["events"][N]["schema"]>,
    options?: PublishOptions,
  ) => Promise<void>;
};

/** What became of a live event: given to the connection, or not, and then why. */
export type LiveOutcome = "ok" | "too_large" | "disconnected" | "congested" | "failed";

type UnacknowledgedPublications<E extends EventsDeclaration> = {
  readonly [N in Names<E, false>]: (
    payload: z.input<E["events"][N]["schema"]>,
    options?: Pick<PublishOptions, "call">,
  ) => LiveOutcome;
};

type LivePublications<E extends EventsDeclaration> = {
  readonly [N in Names<E, true>]: (payload: z.input<E["events"][N]["schema"]>) => LiveOutcome;
};

/**
 * A function for each event. It resolves when the stream has stored the event, and throws `ServiceError` otherwise
 * within two seconds.
 */
export type Publisher<E extends EventsDeclaration> = Publications<E> & {
  /** Publishes events whose loss is acceptable: never throws, a loss is logged and counted. */
  readonly bestEffort: Publications<E>;
  /**
   * Publishes stored events of which so many occur that an acknowledgement each would cost too much. They are stored
   * in the order of publication.
   */
  readonly unacknowledged: UnacknowledgedPublications<E>;
  /**
   * A function for each live event. It never throws or waits: an event that the connection cannot take is dropped and
   * counted.
   */
  readonly live: LivePublications<E>;
};

/** Creates the stream of stored events if it is missing, and the functions that publish a service's events. */
export async function createPublisher<E extends EventsDeclaration>(
  bus: Bus,
  events: E,
): Promise<Publisher<E>> {
  const declared = Object.entries(events.events);
  if (declared.some(([, { live }]) => live === undefined)) await ensureEventsStream(bus);
  const certain: Record<string, (payload: unknown, options?: PublishOptions) => Promise<void>> = {};
  const bestEffort: typeof certain = {};
  const unacknowledged: Record<string, SynchronousPublication> = {};
  const live: Record<string, SynchronousPublication> = {};
  const congestion = createCongestionGauge(bus);
  for (const [name, declaration] of declared) {
    if (declaration.live) {
      live[name] = synchronousPublication(bus, events.service, name, declaration, congestion);
      continue;
    }
    const publish = publication(bus, events.service, name, declaration);
    unacknowledged[name] = synchronousPublication(bus, events.service, name, declaration, congestion);
    certain[name] = publish;
    bestEffort[name] = async (payload, options) => {
      await publish(payload, options).catch((error: unknown) => {
        const trace = options?.call && traceFields(options.call.trace);
        bus.log.warn({ err: error, event: name, ...trace }, "an event was lost");
      });
    };
  }
  // The one place where names known at run time meet the types derived from them.
  return { ...certain, bestEffort, unacknowledged, live } as unknown as Publisher<E>;
}

function publication(bus: Bus, service: string, name: string, declaration: EventDeclaration) {
  const stream = jetstream(bus[natsConnection], { timeout: publishTimeoutMs });
  const span = messageSpan("producer", `${service}.${name}`);
  return (payload: unknown, options: PublishOptions = {}): Promise<void> =>
    recordSpan(bus.tracer, span, options.call?.trace, (trace) => publish(payload, options, trace));

  async function publish(payload: unknown, options: PublishOptions, trace: TraceContext): Promise<void> {
    try {
      const { subject, body } = encodeEvent(service, name, declaration, payload);
      assertConnected(bus);
      await stream.publish(subject, body, {
        headers: traceHeaders(trace),
        timeout: Math.max(
          1,
          Math.min(publishTimeoutMs, options.call?.deadline.remainingMs() ?? publishTimeoutMs),
        ),
        ...(options.dedupeId === undefined ? {} : { msgID: options.dedupeId }),
      });
      bus.metrics.eventsPublished.inc({ name, outcome: "ok" });
    } catch (error) {
      bus.metrics.eventsPublished.inc({ name, outcome: "failed" });
      throw error instanceof ServiceError ? error : ServiceError.of("unavailable", { cause: error });
    }
  }
}

function traceHeaders(trace: TraceContext): MsgHdrs {
  const wire = headers();
  wire.set(traceHeader, formatTraceparent(trace));
  return wire;
}

/** The most that live events may wait for a slow connection, in bytes; what comes then is dropped. */
const congestedBytes = 4 * 1024 * 1024;

/** How much was given to the connection that the broker has not taken yet. */
interface CongestionGauge {
  isCongested(): boolean;
  add(bytes: number): void;
}

/** A completed flush means that the broker has received everything sent before it. */
function createCongestionGauge(bus: Bus): CongestionGauge {
  let waiting = 0;
  let asking = false;
  const ask = async () => {
    asking = true;
    while (waiting > 0 && bus.connected) {
      const sent = waiting;
      await bus.flush();
      waiting -= sent;
    }
  };
  bus.onDisconnect(() => {
    waiting = 0;
  });
  return {
    isCongested: () => waiting > congestedBytes,
    add(bytes) {
      waiting += bytes;
      if (asking) return;
      ask()
        .catch(() => {
          // The connection went, and what waited for it.
          waiting = 0;
        })
        .finally(() => {
          asking = false;
        });
    },
  };
}

type SynchronousPublication = (payload: unknown, options?: Pick<PublishOptions, "call">) => LiveOutcome;

function synchronousPublication(
  bus: Bus,
  service: string,
  name: string,
  declaration: EventDeclaration,
  congestion: CongestionGauge,
): SynchronousPublication {
  const span = messageSpan("producer", `${service}.${name}`);
  const publish: SynchronousPublication = (payload, { call } = {}) => {
    if (!bus.connected) return "disconnected";
    if (congestion.isCongested()) return "congested";
    try {
      const { subject, body } = encodeEvent(service, name, declaration, payload);
      const bytes = Buffer.from(body);
      if (bytes.length > (bus[natsConnection].info?.max_payload ?? 0)) return "too_large";
      const sending = call === undefined ? undefined : bus.tracer?.startSpan(span, call.trace);
      const trace = sending?.trace ?? call?.trace;
      bus[natsConnection].publish(
        subject,
        bytes,
        trace === undefined ? {} : { headers: traceHeaders(trace) },
      );
      sending?.end();
      congestion.add(bytes.length);
      return "ok";
    } catch (error) {
      const trace = call && traceFields(call.trace);
      bus.log.warn({ err: error, event: name, ...trace }, "an event could not be published");
      return "failed";
    }
  };
  return (payload, options) => {
    const outcome = publish(payload, options);
    bus.metrics.eventsPublished.inc({ name, outcome });
    return outcome;
  };
}

/** An event that its own schema or key refuses is a mistake of the publisher: `internal`. */
function encodeEvent(service: string, name: string, declaration: EventDeclaration, payload: unknown) {
  try {
    const checked = declaration.schema.parse(payload);
    return {
      subject: eventSubject(service, name, declaration.key(checked as never), declaration),
      body: JSON.stringify(checked),
    };
  } catch (cause) {
    throw ServiceError.of("internal", { cause });
  }
}
