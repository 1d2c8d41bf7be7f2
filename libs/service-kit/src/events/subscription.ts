import type { EventDeclaration } from "@devmesh/contracts/contract";
import type { EventSubscription } from "@devmesh/contracts/topology";
import type { Msg, Subscription } from "@nats-io/nats-core";
import type { z } from "zod";
import { type Bus, endSubscription } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import { RunningTasks } from "../running-tasks.ts";
import { eventsNamed } from "../subjects.ts";
import { type TraceContext, traceFields, traceHeader } from "../tracing/trace.ts";
import { messageSpan, recordReceived, type SpanDescription } from "../tracing/tracer.ts";

/** What comes along with an event. */
export interface ReceivedEvent {
  readonly name: string;
  readonly key: string;
  /** A span below the publisher's. Of a live event, which has no trace, a new one. */
  readonly trace: TraceContext;
}

/** A handler for each event that a service subscribes to. */
export type EventHandlers<S extends EventSubscription> = {
  readonly [N in S["names"][number]]: (
    payload: z.output<NonNullable<S["events"]["events"][N]>["schema"]>,
    event: ReceivedEvent,
  ) => void | Promise<void>;
};

/** Who receives an event: every replica (`each`) or one of them (`one`). */
export interface SubscribeOptions {
  readonly mode: "each" | "one";
}

/** Events being listened to. */
export interface ActiveSubscription {
  /** Takes no more, then waits for the handlers that run. */
  stop(): Promise<void>;
}

/**
 * Subscribes to another service's events from now on; events while disconnected are missed (`Bus.onReconnect`).
 * Unreadable events and failed handlers are counted and logged.
 */
export function subscribe<const S extends EventSubscription>(
  bus: Bus,
  subscription: S,
  handlers: EventHandlers<S>,
  { mode }: SubscribeOptions,
): ActiveSubscription {
  const running = new RunningTasks();
  const open = subscription.names.map((name): Subscription => {
    const declaration = subscription.events.events[name];
    if (declaration === undefined) throw new TypeError(`${subscription.events.service} has no event ${name}`);
    const handler = (handlers as unknown as Record<string, EventHandler>)[name];
    if (handler === undefined) throw new TypeError(`no handler for the event ${name}`);
    const span = messageSpan("consumer", `${subscription.events.service}.${name}`);
    return bus[natsConnection].subscribe(eventsNamed(subscription.events.service, name, declaration), {
      ...(mode === "one" ? { queue: bus.name } : {}),
      callback: (error, msg) => {
        if (error === null) running.add(handle(bus, declaration, handler, msg, { name, span }));
        else bus.log.error({ err: error, event: name }, "an event is no longer received");
      },
    });
  });
  return {
    async stop() {
      await Promise.all(open.map((one) => endSubscription(bus, one)));
      await running.settled();
    },
  };
}

type EventHandler = (payload: unknown, event: ReceivedEvent) => void | Promise<void>;

async function handle(
  bus: Bus,
  declaration: EventDeclaration,
  handler: EventHandler,
  msg: Msg,
  { name, span }: { readonly name: string; readonly span: SpanDescription },
): Promise<void> {
  let payload: unknown;
  try {
    payload = declaration.schema.parse(JSON.parse(msg.string()));
  } catch (error) {
    bus.metrics.eventsHandled.inc({ name, outcome: "unreadable" });
    bus.log.warn({ err: error, event: name }, "an unreadable event was dropped");
    return;
  }
  const traceparent = msg.headers?.get(traceHeader) || undefined;
  let trace: TraceContext | undefined;
  try {
    // An event without a trace, as live ones are, begins none: they are too many.
    await recordReceived(
      traceparent === undefined ? undefined : bus.tracer,
      span,
      traceparent,
      async (own) => {
        trace = own;
        await handler(payload, { name, key: msg.subject.split(".").at(-1) ?? "", trace });
      },
    );
    bus.metrics.eventsHandled.inc({ name, outcome: "ok" });
  } catch (error) {
    bus.metrics.eventsHandled.inc({ name, outcome: "failed" });
    const fields = { err: error, event: name, ...(trace && traceFields(trace)) };
    bus.log.error(fields, "a handler of an event failed");
  }
}
