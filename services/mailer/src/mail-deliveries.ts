import type { QueueDeclaration } from "@devmesh/contracts/contract";
import type { mailQueue } from "@devmesh/contracts/mailer";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { consumeQueue, type QueueWorker } from "@devmesh/service-kit/queue-consumer";
import { deliverMail, type MailDelivery } from "./deliver-mail.ts";

/** The queue of mail; its waits are a deployment's, or a test's. */
export type MailQueue = Omit<typeof mailQueue, "backoffMs" | "attemptMs"> &
  Pick<QueueDeclaration, "backoffMs" | "attemptMs">;

/** What working on the queue needs. */
export interface MailDeliveryParts extends MailDelivery {
  readonly bus: Bus;
  readonly queue: MailQueue;
  readonly clock: Clock;
  /** How long a mail under way may go on once `stop` is called, before it is cut off; in milliseconds. */
  readonly drainMs: number;
}

/** Mails under way at once: enough that a slow recipient holds up nobody, few enough for any server's limit. */
const concurrency = 4;

/**
 * Works on the mail queue until stopped; makes the queue's streams. `stop` returns within `drainMs` and a moment:
 * mail that is still under way then is cut off, which counts as a failed attempt.
 */
export async function startMailDeliveries(parts: MailDeliveryParts): Promise<QueueWorker> {
  const { bus, queue, clock, drainMs } = parts;
  const cutOff = new AbortController();
  const consuming = await consumeQueue(
    bus,
    queue,
    (job, attempt) =>
      deliverMail(parts, job, { ...attempt, signal: AbortSignal.any([attempt.signal, cutOff.signal]) }),
    { concurrency },
  );
  return {
    async stop() {
      const cancel = clock.schedule(drainMs, () => cutOff.abort(new Error("the mailer is stopping")));
      try {
        await consuming.stop();
      } finally {
        cancel();
      }
    },
  };
}
