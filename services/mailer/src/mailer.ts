import type { DeadMail, mailer } from "@devmesh/contracts/mailer";
import type { MailDelivery } from "@devmesh/contracts/model/mesh-state";
import type { QueueAdmin } from "@devmesh/service-kit/queue/admin";
import type { DeadLetter } from "@devmesh/service-kit/queue/dead-letter";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { z } from "zod";
import type { MailQueue } from "./mail-deliveries.ts";

/** Far below the limit of a reply, since the queue bounds the text of an error. */
const pageLimit = 100;

/** Options of the mailer's contract. */
interface MailerOptions {
  readonly queue: QueueAdmin<MailQueue>;
  readonly delivery: MailDelivery;
}

/** Reads the queue, and lists and retries dead mail. */
export function createMailer({ queue, delivery }: MailerOptions): Implementation<typeof mailer> {
  return {
    async listDeadMail({ after, limit = pageLimit }, context) {
      const sequence = after === undefined ? 0 : parseSequence(after);
      if (sequence === null) return context.fail("cursor_invalid");
      const { letters, next } = await queue.listDeadLetters({
        after: sequence,
        limit: Math.min(limit, pageLimit),
      });
      return { next: next === null ? null : String(next), items: letters.map(describeDeadMail) };
    },

    async retryDeadMail({ id }, context) {
      const sequence = parseSequence(id);
      if (sequence === null || !(await queue.retryDeadLetter(sequence)))
        return context.fail("mail_not_found");
      return {};
    },

    async readQueue() {
      const { pending, dead } = await queue.count();
      return { waiting: pending, dead, delivery };
    },
  };
}

function describeDeadMail(letter: DeadLetter<MailQueue>): z.input<typeof DeadMail> {
  return {
    id: String(letter.sequence),
    kind: letter.job?.kind ?? null,
    customer_id: letter.job?.customer_id ?? null,
    attempts: letter.attempts,
    last_error: letter.error,
    failed_at: letter.failedAt.toISOString(),
  };
}

function parseSequence(text: string): number | null {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null;
}
