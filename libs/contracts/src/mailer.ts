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
import { AlertState } from "./model/alert.ts";
import { MailDelivery } from "./model/mesh-state.ts";
import { Severity } from "./model/rule.ts";
import { Timestamp } from "./model/time.ts";

/** Many alerts of one rule in a minute, as one. */
export const AlertStorm = z.object({
  rule_id: z.string(),
  rule_name: z.string(),
  severity: Severity,
  /** The condition in words, with its threshold. */
  condition: z.string(),
  firing: z.int().min(0),
  cleared: z.int().min(0),
  /** The first of them. */
  device_ids: z.array(z.string()),
  note: z.string().nullable(),
});
export type AlertStorm = z.output<typeof AlertStorm>;

/** A mail about alerts to one address. Its texts come from people and devices. */
export const AlertMail = z.object({
  to: z.string(),
  alerts: z.array(
    z.object({
      /** Absent in a mail that an earlier release queued. */
      alert_id: z.string().optional(),
      /** `firing` or `cleared`. */
      state: AlertState,
      rule_id: z.string(),
      rule_name: z.string(),
      severity: Severity,
      device_id: z.string(),
      device_name: z.string().nullable(),
      /** The condition in words, with its threshold. */
      condition: z.string(),
      /** The value as JSON text; null where the condition has none. */
      value: z.string().nullable(),
      since: Timestamp,
      note: z.string().nullable(),
    }),
  ),
  /** How many alerts there are besides those, without those of storms. */
  more: z.int().min(0),
  /** Absent in a mail that an earlier release queued. */
  storms: z.array(AlertStorm).optional(),
  /** Name of a channel that is tested; there are no alerts then. */
  test: z.string().optional(),
});
export type AlertMail = z.output<typeof AlertMail>;

/** Mail to send. It holds no secret: the mailer reads those from the owner. */
export const mailQueue = defineQueue({
  name: "mail",
  job: z.object({ kind: z.literal("invitation"), customer_id: z.string() }),
  backoffMs: [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 7_200_000],
  attemptMs: 60_000,
});

/** Mail about alerts. Its queue is separate, so that neither kind of mail delays the other. */
export const alertMailQueue = defineQueue({
  name: "alert_mail",
  job: AlertMail,
  backoffMs: [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000],
  attemptMs: 60_000,
});

/** A mail that was given up; `kind` is null where another release queued it in another form. */
export const DeadMail = z
  .object({
    id: z.string().describe("Id of the mail."),
    kind: z
      .literal("invitation")
      .nullable()
      .describe(
        "What it is; null for mail about alerts, which has `to`, and where another release queued it in a form of its own.",
      ),
    customer_id: z.string().nullable().describe("Who is invited; null for other mail."),
    to: z
      .string()
      .nullable()
      .optional()
      .describe("The address of a mail about alerts; null for other mail. Absent from an earlier release."),
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
      to: null,
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
