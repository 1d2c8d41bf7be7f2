import type { DeadMail, mailer } from "@devmesh/contracts/mailer";
import type { MailDelivery } from "@devmesh/contracts/model/mesh-state";
import type { QueueAdmin } from "@devmesh/service-kit/queue/admin";
import type { DeadLetter } from "@devmesh/service-kit/queue/dead-letter";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { z } from "zod";
import type { AlertMailQueue, MailQueue } from "./mail-deliveries.ts";
import type { CountMails } from "./mail-metrics.ts";

/** Far below the limit of a reply, since the queue bounds the text of an error. */
const pageLimit = 100;

/** Options of the mailer's contract. */
interface MailerOptions {
  readonly queue: QueueAdmin<MailQueue>;
  readonly alertQueue: QueueAdmin<AlertMailQueue>;
  readonly count: CountMails;
  readonly delivery: MailDelivery;
}

/** Reads the queues, and lists and retries dead mail: that of people first, then that about alerts. */
export function createMailer(options: MailerOptions): Implementation<typeof mailer> {
  const { queue, alertQueue, count, delivery } = options;
  return {
    async listDeadMail({ after, limit = pageLimit }, context) {
      const position = after === undefined ? { ofAlerts: false, sequence: 0 } : parsePosition(after);
      if (position === null) return context.fail("cursor_invalid");
      const most = Math.min(limit, pageLimit);
      const items: z.input<typeof DeadMail>[] = [];
      if (!position.ofAlerts) {
        const { letters, next } = await queue.listDeadLetters({ after: position.sequence, limit: most });
        items.push(...letters.map(describeDeadMail));
        if (next !== null) return { next: String(next), items };
      }
      const { letters, next } = await alertQueue.listDeadLetters({
        after: position.ofAlerts ? position.sequence : 0,
        limit: most - items.length,
      });
      items.push(...letters.map(describeDeadAlertMail));
      return { next: next === null ? null : `${alertMark}${next}`, items };
    },

    async retryDeadMail({ id }, context) {
      const position = parsePosition(id);
      if (position === null) return context.fail("mail_not_found");
      const of = position.ofAlerts ? alertQueue : queue;
      if (!(await of.retryDeadLetter(position.sequence))) return context.fail("mail_not_found");
      return {};
    },

    async readQueue() {
      const { pending, dead } = await count();
      return { waiting: pending, dead, delivery };
    },
  };
}

function describeDeadMail(letter: DeadLetter<MailQueue>): z.input<typeof DeadMail> {
  return {
    ...describeLetter(letter),
    id: String(letter.sequence),
    kind: letter.job?.kind ?? null,
    customer_id: letter.job?.customer_id ?? null,
    to: null,
  };
}

function describeDeadAlertMail(letter: DeadLetter<AlertMailQueue>): z.input<typeof DeadMail> {
  return {
    ...describeLetter(letter),
    id: `${alertMark}${letter.sequence}`,
    kind: null,
    customer_id: null,
    to: letter.job?.to ?? null,
  };
}

function describeLetter({
  attempts,
  error,
  failedAt,
}: Pick<DeadLetter<MailQueue>, "attempts" | "error" | "failedAt">) {
  return { attempts, last_error: error, failed_at: failedAt.toISOString() };
}

/** Precedes the sequence of a mail about alerts: each queue counts on its own. */
const alertMark = "a";

/** 0 is where the mails about alerts begin. */
function parsePosition(text: string): { readonly ofAlerts: boolean; readonly sequence: number } | null {
  const [, mark, digits] = /^(?:(a)(?=\d))?(0(?<=a0)|[1-9]\d{0,14})$/.exec(text) ?? [];
  return digits === undefined ? null : { ofAlerts: mark === alertMark, sequence: Number(digits) };
}
