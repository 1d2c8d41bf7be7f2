import type { EventDeclaration, EventsDeclaration } from "@devmesh/contracts/contract";
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import type { z } from "zod";
import type { Bus } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import { ensureEventsStream, storeMessage } from "../connection/streams.ts";
import { type CallContext, fromWebhookHeader } from "../rpc/context.ts";
import { eventSubject } from "../subjects.ts";
import { type TraceContext, traceFields, traceHeaders } from "../tracing/trace.ts";
import { messageSpan, recordSpan } from "../tracing/tracer.ts";

/** What may go along with an event. */
export interface PublishOptions {
  /** A second publication with the same id within two minutes is not stored again. Of acknowledged events alone. */
  readonly dedupeId?: string;
  /** The call that led to the event: its trace is passed on and its deadline bounds the wait. */
  readonly call?: CallContext | undefined;
  /** Whether a receiver of webhooks caused it, where no call says so. */
  readonly fromWebhook?: boolean | undefined;
  /** The caller publishes again what `failed`, and logs the end itself. */
  readonly isRetried?: true;
}

/**
 * What became of an event: `ok` when its stream has stored it, or the connection has taken one without an
 * acknowledgement. All others are lost, counted, and logged unless the connection could not take them. Only `failed`,
 * `disconnected` and `congested` may end better the next time.
 */
export type PublicationOutcome = "ok" | "invalid" | "too_large" | "disconnected" | "congested" | "failed";

type Unacknowledged = { readonly live: true } | { readonly unacknowledged: true };

/**
 * A function for each event, which never throws. That of a live or an unacknowledged event does not wait, and drops
 * what the connection cannot take. All others wait until the stream has stored the event, at most two seconds.
 */
export type Publisher<E extends EventsDeclaration> = {
  readonly [N in keyof E["events"] & string]: (
    payload: z.input<E["events"][N]["schema"]>,
    options?: PublishOptions,
  ) => E["events"][N] extends Unacknowledged ? PublicationOutcome : Promise<PublicationOutcome>;
};

/** Creates the stream of stored events if it is missing, and the functions that publish a service's events. */
export async function createPublisher<E extends EventsDeclaration>(
  bus: Bus,
  { service, events }: E,
): Promise<Publisher<E>> {
  const declared = Object.entries(events);
  if (declared.some(([, { live }]) => live === undefined)) await ensureEventsStream(bus);
  const congestion = createCongestionGauge(bus);
  const publications = declared.map(([name, declaration]) => [
    name,
    publication(bus, service, name, declaration, congestion),
  ]);
  // The one place where names known at run time meet the types derived from them.
  return Object.fromEntries(publications) as Publisher<E>;
}

function publication(
  bus: Bus,
  service: string,
  name: string,
  declaration: EventDeclaration,
  congestion: CongestionGauge,
) {
  const span = messageSpan("producer", `${service}.${name}`);

  async function store(
    payload: unknown,
    { dedupeId, call, fromWebhook, isRetried }: PublishOptions = {},
  ): Promise<PublicationOutcome> {
    const encoded = encode(payload, call);
    if (typeof encoded === "string") return encoded;
    const { subject, body } = encoded;
    try {
      await recordSpan(bus.tracer, span, call?.trace, (trace) =>
        storeMessage(bus, subject, body, {
          headers: eventHeaders(trace, fromWebhook ?? call?.fromWebhook),
          dedupeId,
          timeoutMs: call?.deadline.remainingMs(),
        }),
      );
      return ended("ok");
    } catch (error) {
      return isRetried ? ended("failed") : lost("failed", error, call);
    }
  }

  function send(payload: unknown, { call, fromWebhook }: PublishOptions = {}): PublicationOutcome {
    if (!bus.connected) return ended("disconnected");
    if (congestion.isCongested()) return ended("congested");
    const encoded = encode(payload, call);
    if (typeof encoded === "string") return encoded;
    const { subject, body } = encoded;
    try {
      const sending = call === undefined ? undefined : bus.tracer?.startSpan(span, call.trace);
      const trace = sending?.trace ?? call?.trace;
      const isFlagged = fromWebhook ?? call?.fromWebhook ?? false;
      const hasHeaders = trace !== undefined || isFlagged;
      bus[natsConnection].publish(
        subject,
        body,
        hasHeaders ? { headers: eventHeaders(trace, isFlagged) } : {},
      );
      sending?.end();
      congestion.add(body.length);
      return ended("ok");
    } catch (error) {
      return lost("failed", error, call);
    }
  }

  /** The event as a message; `invalid` or `too_large` if it can be none. */
  function encode(payload: unknown, call: CallContext | undefined) {
    try {
      const checked = declaration.schema.parse(payload);
      const subject = eventSubject(service, name, declaration.key(checked as never), declaration);
      const body = Buffer.from(JSON.stringify(checked));
      return body.length > (bus[natsConnection].info?.max_payload ?? Number.POSITIVE_INFINITY)
        ? ended("too_large")
        : { subject, body };
    } catch (error) {
      return lost("invalid", error, call);
    }
  }

  function ended(outcome: PublicationOutcome): PublicationOutcome {
    bus.metrics.eventsPublished.inc({ name, outcome });
    return outcome;
  }

  function lost(outcome: PublicationOutcome, error: unknown, call: CallContext | undefined) {
    bus.log.warn({ err: error, event: name, ...(call && traceFields(call.trace)) }, "an event was lost");
    return ended(outcome);
  }

  return declaration.live || declaration.unacknowledged ? send : store;
}

function eventHeaders(trace: TraceContext | undefined, fromWebhook: boolean | undefined): MsgHdrs {
  const wire = trace === undefined ? headers() : traceHeaders(trace);
  if (fromWebhook) wire.set(fromWebhookHeader, "1");
  return wire;
}

/** The most that unacknowledged events may wait for a slow connection, in bytes; what comes then is dropped. */
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
