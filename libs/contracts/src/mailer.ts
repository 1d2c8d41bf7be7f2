import { z } from "zod";
import {
  cursor_invalid,
  defineContract,
  defineQueue,
  done,
  doneIfRepeated,
  idempotent,
  ofPage,
  pageOf,
} from "./contract.ts";
import { MailDelivery } from "./model/mesh-state.ts";
import { Timestamp } from "./model/time.ts";

/** Mail to send. It holds no secret: the mailer reads those from the owner. */
export const mailQueue = defineQueue({
  name: "mail",
  job: z.object({ kind: z.literal("invitation"), customer_id: z.string() }),
  backoffMs: [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 7_200_000],
  attemptMs: 60_000,
});

/** A mail that was given up; `kind` and `customer_id` are null where another release queued it in another form. */
export const DeadMail = z
  .object({
    id: z.string().describe("Id of the mail."),
    kind: z
      .literal("invitation")
      .nullable()
      .describe("What it is; null where another release queued it in a form of its own."),
    customer_id: z.string().nullable().describe("The addressee; null as `kind`."),
    attempts: z.int().describe("Number of attempts to send it."),
    last_error: z.string().describe("What the mail server answered last."),
    failed_at: Timestamp.describe("When it was given up."),
  })
  .meta({
    id: "DeadMail",
    description: "A mail that was given up.",
    example: {
      id: "17",
      kind: "invitation",
      customer_id: "0198c2a0b7f1",
      attempts: 9,
      last_error: "550 no such mailbox",
      failed_at: "2026-01-31T12:00:00.000Z",
    },
  });

/** The queue of mail and its dead letters. Mail is queued with {@link mailQueue}. */
export const mailer = defineContract({
  service: "mailer",
  version: 1,
  methods: {
    listDeadMail: {
      ...idempotent,
      in: z.object(ofPage),
      out: pageOf(DeadMail),
      errors: { cursor_invalid },
    },
    /** Queues a given-up mail again. */
    retryDeadMail: {
      ...idempotent,
      in: z.object({ id: z.string() }),
      out: done,
      errors: {
        mail_not_found: doneIfRepeated({
          code: "not_found",
          when: "There is no given-up mail of that id.",
        }),
      },
    },
    readQueue: {
      ...idempotent,
      in: z.object({}),
      out: z.object({
        waiting: z.int(),
        dead: z.int(),
        /** Absent from an earlier release. */
        delivery: MailDelivery.optional(),
      }),
    },
  },
});
