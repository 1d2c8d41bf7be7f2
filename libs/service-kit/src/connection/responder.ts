import type { Msg, Subscription } from "@nats-io/nats-core";
import { RunningTasks } from "../running-tasks.ts";
import { reconnectedSubject } from "../subjects.ts";
import { type Bus, endSubscription } from "./bus.ts";
import { natsConnection } from "./nats-connection.ts";

/** Answers requests, in turn with the other members of a queue group. */
export interface Responder {
  /** The answers under way. */
  readonly running: RunningTasks;
  /** Takes no more requests. */
  stop(): Promise<void>;
}

/** Most callers' inboxes that are remembered; each service has one. */
const maxInboxes = 100;

/**
 * Answers the requests on some subjects; an answer must not reject. What is on its way over a connection is lost with
 * it: while the bus leaves a server that is about to stop, the other members take the requests, and after a reconnect
 * callers send idempotent ones again.
 */
export function startResponder(
  bus: Bus,
  queue: string,
  answers: ReadonlyMap<string, (msg: Msg) => Promise<void>>,
): Responder {
  const running = new RunningTasks();
  const inboxes = new Set<string>();
  let subscriptions: readonly Subscription[] = [];
  let ended: Promise<unknown> = Promise.resolve();
  let isStopped = false;

  function resume(): void {
    const connection = bus[natsConnection];
    if (isStopped || subscriptions.length > 0 || connection.isClosed() || connection.isDraining()) return;
    subscriptions = [...answers].map(([subject, answer]) =>
      connection.subscribe(subject, {
        queue,
        callback: (error, msg) => {
          if (error === null) {
            remember(msg.reply);
            running.add(answer(msg));
          } else bus.log.error({ err: error, subject }, "requests can no longer be answered");
        },
      }),
    );
  }

  /** Of services alone: the broker, which asks for logins, has other inboxes. */
  function remember(reply = ""): void {
    const [inbox = "", answering] = reply.split(".", 2);
    if (answering === queue && inboxes.size < maxInboxes) inboxes.add(inbox);
  }

  const ignoreReconnects = bus.onReconnect(() => {
    for (const inbox of inboxes) bus[natsConnection].publish(reconnectedSubject(inbox, queue));
  });

  /** Also waits for subscriptions that another pause is ending. */
  async function pause(): Promise<void> {
    const former = subscriptions;
    subscriptions = [];
    ended = Promise.all([ended, ...former.map((subscription) => endSubscription(bus, subscription))]);
    await ended;
  }

  resume();
  bus.leaveAfter({ isBusy: () => running.size > 0, requests: { pause, resume } });
  return {
    running,
    async stop() {
      isStopped = true;
      ignoreReconnects();
      await pause();
    },
  };
}
