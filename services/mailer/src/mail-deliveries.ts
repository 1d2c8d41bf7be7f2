import type { QueueDeclaration } from "@devmesh/contracts/contract";
import type { keys } from "@devmesh/contracts/keys";
import type { AlertMail, alertMailQueue, mailQueue } from "@devmesh/contracts/mailer";
import { EmailAddress } from "@devmesh/contracts/model/email-address";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import {
  type Attempt,
  consumeQueue,
  type QueueWorker,
  UnrecoverableError,
} from "@devmesh/service-kit/queue/consumer";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { traceFields } from "@devmesh/service-kit/tracing/trace";
import type { z } from "zod";
import { writeAlertMail } from "./alert-mail.ts";
import { writeInvitation } from "./invitation.ts";
import { type MailAddress, mailDomainOf } from "./mail-address.ts";
import type { MailMetrics } from "./mail-metrics.ts";
import { type Mail, MailRefused, type MailTransport } from "./transport.ts";

/** The queue of mail; tests have their own delays. */
export type MailQueue = Omit<typeof mailQueue, "backoffMs" | "attemptMs"> &
  Pick<QueueDeclaration, "backoffMs" | "attemptMs">;

/** The queue of mail about alerts. */
export type AlertMailQueue = Omit<typeof alertMailQueue, "backoffMs" | "attemptMs"> &
  Pick<QueueDeclaration, "backoffMs" | "attemptMs">;

type MailJob = z.output<MailQueue["job"]>;

/** Options of the delivery of queued mail. */
export interface MailDeliveryOptions {
  readonly bus: Bus;
  readonly queue: MailQueue;
  readonly alertQueue: AlertMailQueue;
  readonly clock: Clock;
  /** How long a mail under way may go on after `stop`, in milliseconds. */
  readonly drainMs: number;
  readonly keys: Client<typeof keys, "readInvitation">;
  readonly transport: MailTransport;
  readonly sender: MailAddress;
  readonly publicUrl: URL;
  readonly metrics: MailMetrics;
  readonly log: Logger;
}

/** Mails under way at a time: one slow recipient does not block the others. */
const concurrency = 4;
/** Of mails about alerts. */
const alertConcurrency = 2;

/**
 * Works on the mail queue until stopped; creates the queue's streams. `stop` aborts mail that is still under way after
 * `drainMs`, which counts as a failed attempt.
 */
export async function startMailDeliveries(options: MailDeliveryOptions): Promise<QueueWorker> {
  const { bus, queue, alertQueue, clock, drainMs } = options;
  const cutOff = new AbortController();
  const cut = (attempt: Attempt) => ({
    ...attempt,
    signal: AbortSignal.any([attempt.signal, cutOff.signal]),
  });
  const consuming = await Promise.all([
    consumeQueue(bus, queue, (job, attempt) => deliverMail(options, job, cut(attempt)), { concurrency }),
    consumeQueue(bus, alertQueue, (job, attempt) => deliverAlerts(options, job, cut(attempt)), {
      concurrency: alertConcurrency,
    }),
  ]);
  return {
    async stop() {
      const cancel = clock.schedule(drainMs, () => cutOff.abort(new Error("the mailer is stopping")));
      try {
        await Promise.all(consuming.map((queue) => queue.stop()));
      } finally {
        cancel();
      }
    },
  };
}

/** One attempt at one queued mail about alerts. @throws UnrecoverableError when no later attempt can succeed */
async function deliverAlerts(options: MailDeliveryOptions, job: AlertMail, attempt: Attempt): Promise<void> {
  const { sender, publicUrl } = options;
  const { queuedAt, sequence } = attempt;
  const id = `alert-${queuedAt.getTime()}-${sequence}`;
  const mail: Mail = {
    id,
    messageId: `<${id}@${mailDomainOf(publicUrl)}>`,
    queuedAt,
    from: sender,
    to: job.to,
    ...writeAlertMail(job, publicUrl),
    secrets: [],
  };
  await send(options, mail, attempt, { kind: "alert", alerts: job.alerts.length + job.more });
}

/**
 * One attempt at one queued mail. @throws UnrecoverableError when no later attempt can succeed. A mail whose process
 * dies between sending and acknowledging is sent twice, with the same Message-ID.
 */
async function deliverMail(options: MailDeliveryOptions, job: MailJob, attempt: Attempt): Promise<void> {
  const { log } = options;
  const { kind, customer_id } = job;
  const subject = { kind, customer_id };
  const invitation = await readInvitation(options, job, attempt);
  if (invitation === null) {
    const fields = { attempt: attempt.number, ...traceFields(attempt.trace) };
    log.info({ ...subject, ...fields }, "the customer is gone; no mail is sent");
    return;
  }
  await send(options, invitationMail(options, invitation, attempt), attempt, subject);
}

async function send(
  { transport, metrics, log }: MailDeliveryOptions,
  mail: Mail,
  attempt: Attempt,
  subject: object,
): Promise<void> {
  try {
    await transport.send(mail, attempt.signal);
  } catch (error) {
    if (error instanceof MailRefused) throw new UnrecoverableError(error.message, { cause: error });
    throw error;
  }
  metrics.sent.inc();
  const fields = { attempt: attempt.number, ...traceFields(attempt.trace), message_id: mail.messageId };
  log.info({ ...subject, ...fields }, "a mail was sent");
}

type StoredInvitation = Awaited<ReturnType<MailDeliveryOptions["keys"]["readInvitation"]>>;

async function readInvitation(
  { keys }: MailDeliveryOptions,
  { customer_id }: MailJob,
  attempt: Attempt,
): Promise<StoredInvitation | null> {
  try {
    return await keys.readInvitation({ customer_id }, attempt);
  } catch (error) {
    if (isReason(error, "customer_not_found")) return null;
    throw error;
  }
}

function invitationMail(
  { sender, publicUrl }: MailDeliveryOptions,
  { email, token, confirmation, expires_at }: StoredInvitation,
  { queuedAt, sequence }: Attempt,
): Mail {
  const recipient = EmailAddress.safeParse(email);
  if (!recipient.success) throw new UnrecoverableError("the customer's address is not an e-mail address");
  // Both parts are the same in all attempts; the time distinguishes queues that were created again.
  const id = `${queuedAt.getTime()}-${sequence}`;
  return {
    id,
    messageId: `<invitation.${id}@${mailDomainOf(publicUrl)}>`,
    queuedAt,
    from: sender,
    to: recipient.data,
    ...writeInvitation({ token, confirmation, expiresAt: new Date(expires_at), publicUrl }),
    secrets: [token, confirmation],
  };
}
