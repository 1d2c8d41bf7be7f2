import type { keys } from "@devmesh/contracts/keys";
import type { mailQueue } from "@devmesh/contracts/mailer";
import { EmailAddress } from "@devmesh/contracts/model/email-address";
import { isReason } from "@devmesh/service-kit/errors";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Logger } from "@devmesh/service-kit/logger";
import { type Attempt, UnrecoverableError } from "@devmesh/service-kit/queue-consumer";
import type { z } from "zod";
import { writeInvitation } from "./invitation.ts";
import type { Mail } from "./mail.ts";
import { type MailAddress, mailDomainOf } from "./mail-address.ts";
import type { MailMetrics } from "./mail-metrics.ts";
import { MailRefused, type MailTransport } from "./transport.ts";

/** What the delivery of queued mail needs. */
export interface MailDelivery {
  readonly keys: Client<typeof keys, "readInvitation">;
  readonly transport: MailTransport;
  readonly sender: MailAddress;
  readonly publicUrl: URL;
  readonly metrics: MailMetrics;
  readonly log: Logger;
}

/** One queued mail, as `mailQueue` declares it. */
export type MailJob = z.output<(typeof mailQueue)["job"]>;

/**
 * One attempt at one queued mail. Resolves when it is sent, or when nobody is left to send it to. Throws
 * `UnrecoverableError` when no later attempt can help, anything else when one may. A mail whose process died between
 * sending and acknowledging goes out twice, with the same Message-ID.
 */
export async function deliverMail(delivery: MailDelivery, job: MailJob, attempt: Attempt): Promise<void> {
  const { transport, metrics, log } = delivery;
  const { kind, customer_id } = job;
  const subject = { kind, customer_id, attempt: attempt.number, trace_id: attempt.trace.traceId };
  const invitation = await readInvitation(delivery, job, attempt);
  if (invitation === null) {
    log.info(subject, "the customer is gone; no mail is sent");
    return;
  }
  const mail = invitationMail(delivery, invitation, attempt);
  try {
    await transport.send(mail, attempt.signal);
  } catch (error) {
    if (error instanceof MailRefused) throw new UnrecoverableError(error.message, { cause: error });
    throw error;
  }
  metrics.sent.inc();
  log.info({ ...subject, message_id: mail.messageId }, "a mail was sent");
}

type StoredInvitation = Awaited<ReturnType<MailDelivery["keys"]["readInvitation"]>>;

async function readInvitation(
  { keys }: MailDelivery,
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
  { sender, publicUrl }: MailDelivery,
  { email, token, confirmation, expires_at }: StoredInvitation,
  { queuedAt, sequence }: Attempt,
): Mail {
  const recipient = EmailAddress.safeParse(email);
  if (!recipient.success) throw new UnrecoverableError("the customer's address is not an e-mail address");
  // Both parts stay with the job over all its attempts; the time tells apart queues that were made anew.
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
