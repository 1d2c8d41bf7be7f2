import type { Msg, Subscription } from "@nats-io/nats-core";
import { type Bus, endSubscription } from "./bus.ts";
import { RunningTasks } from "./running-tasks.ts";

/** Answers requests, in turn with the other members of a queue group. */
export interface Responder {
  /** The answers under way. */
  readonly running: RunningTasks;
  /** Takes no more requests. */
  stop(): Promise<void>;
}

/**
 * Answers the requests on some subjects; an answer must not reject. While the bus leaves a server that is about to
 * stop, the other members take the requests: the broker refuses an answer over another connection than its request's.
 */
export function startResponder(
  bus: Bus,
  queue: string,
  answers: ReadonlyMap<string, (msg: Msg) => Promise<void>>,
): Responder {
  const running = new RunningTasks();
  let subscriptions: readonly Subscription[] = [];
  let ended: Promise<unknown> = Promise.resolve();
  let isStopped = false;

  function resume(): void {
    const { connection } = bus;
    if (isStopped || subscriptions.length > 0 || connection.isClosed() || connection.isDraining()) return;
    subscriptions = [...answers].map(([subject, answer]) =>
      connection.subscribe(subject, {
        queue,
        callback: (error, msg) => {
          if (error === null) running.add(answer(msg));
          else bus.log.error({ err: error, subject }, "requests can no longer be answered");
        },
      }),
    );
  }

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
      await pause();
    },
  };
}
