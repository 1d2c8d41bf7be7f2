import { z } from "zod";
import { readBacklog } from "./backlog.ts";
import {
  cursor_invalid,
  defineContract,
  defineEvent,
  defineEvents,
  done,
  doneIfRepeated,
  idempotent,
  notIdempotent,
  ofPage,
  pageOf,
} from "./contract.ts";
import { CloudEvent } from "./model/cloud-event.ts";
import { DeviceId } from "./model/device-id.ts";
import { Timestamp } from "./model/time.ts";
import { Violation } from "./model/violation.ts";
import {
  CreatedWebhook,
  DeadDelivery,
  Webhook,
  WebhookFormat,
  WebhookInput,
  WebhookPatch,
  WebhookSecret,
  WebhookTest,
} from "./model/webhook.ts";

const webhook_not_found = { code: "not_found", when: "There is no webhook of that id." } as const;
const webhook_disabled = {
  code: "conflict",
  when: "The webhook is disabled; nothing is queued for it.",
} as const;
const dead_letter_not_found = {
  code: "not_found",
  when: "There is no event of that id that was given up; it was sent again, or 30 days have passed.",
} as const;
const url_refused = {
  code: "invalid_argument",
  when: "Requests may not go to that URL: it is not `https:`, not all of its addresses are public, it is of the mesh itself, it holds a key, or only its beginning is given.",
  details: z.array(Violation),
} as const;
const ofWebhook = z.object({ id: z.string() });

/** Delivers what happens to URLs, and keeps what could not be delivered. */
export const webhooks = defineContract({
  service: "webhooks",
  version: 1,
  methods: {
    createWebhook: {
      ...notIdempotent,
      deadlineMs: 10_000,
      in: WebhookInput,
      out: CreatedWebhook,
      errors: {
        url_refused,
        too_many_webhooks: { code: "conflict", when: "There are 50 webhooks; one must be deleted first." },
      },
    },
    /** Oldest first. */
    listWebhooks: {
      ...idempotent,
      in: z.object(ofPage),
      out: pageOf(Webhook),
      errors: { cursor_invalid },
    },
    readWebhook: { ...idempotent, in: ofWebhook, out: Webhook, errors: { webhook_not_found } },
    patchWebhook: {
      ...idempotent,
      deadlineMs: 10_000,
      in: z.object({ id: z.string(), patch: WebhookPatch }),
      out: Webhook,
      errors: { webhook_not_found, url_refused },
    },
    /** Drops what waits and what was given up. */
    deleteWebhook: {
      ...idempotent,
      in: ofWebhook,
      out: done,
      errors: { webhook_not_found: doneIfRepeated(webhook_not_found) },
    },
    readSecret: {
      ...idempotent,
      in: ofWebhook,
      out: WebhookSecret,
      errors: {
        webhook_not_found,
        secret_not_shown: {
          code: "not_found",
          when: "Secrets are shown only when they are made (`KEYS_REVEAL`).",
        },
      },
    },
    /** The former secret signs beside the new one for a day. */
    rotateSecret: {
      ...notIdempotent,
      in: ofWebhook,
      out: WebhookSecret,
      errors: {
        webhook_not_found,
        secret_rotated_recently: {
          code: "conflict",
          when: "The secret was replaced in the last 24 h; the former one still signs.",
        },
      },
    },
    /** One request now, which is not queued; also of a disabled webhook. */
    testWebhook: {
      ...notIdempotent,
      deadlineMs: 20_000,
      in: ofWebhook,
      out: WebhookTest,
      errors: { webhook_not_found },
    },
    /** Oldest first. */
    listDeadDeliveries: {
      ...idempotent,
      in: z.object({ id: z.string(), ...ofPage }),
      out: pageOf(DeadDelivery),
      errors: { webhook_not_found, cursor_invalid },
    },
    /** Queues one of them again, or all; of all as many as are done in the time, and the others stay. */
    retryDeadDeliveries: {
      ...idempotent,
      deadlineMs: 30_000,
      in: z.object({ id: z.string(), dead: z.string().optional() }),
      out: z.object({ queued: z.int().min(0) }),
      errors: { webhook_not_found, webhook_disabled, dead_letter_not_found },
    },

    /**
     * Queues one event for one webhook, whatever its `events`. It is delivered at least once; a second call with the
     * same `event.id` within two minutes queues nothing. Chats are sent `text` alone.
     */
    deliver: {
      ...idempotent,
      in: z.object({
        webhook_id: z.string(),
        format: WebhookFormat,
        event: CloudEvent.pick({ id: true, type: true, subject: true, time: true, data: true }),
        text: z.string().min(1).max(2_000),
      }),
      out: done,
      errors: { webhook_not_found, webhook_disabled },
    },
    /** Deletes what was given up about a deleted device (ADR 14). */
    purgeDevice: { ...idempotent, deadlineMs: 10_000, in: z.object({ device_id: DeviceId }), out: done },
    /** How many events wait, of the webhook with the most. */
    readBacklog,
  },
});

/** Best effort: a crash between store and publish can lose the event, never the state. */
export const webhookEvents = defineEvents({
  service: "webhooks",
  events: {
    webhook_changed: defineEvent(
      z.object({
        id: z.string(),
        timestamp: Timestamp,
        change: z.enum(["created", "updated", "disabled", "deleted"]),
      }),
      (event) => event.id,
    ),
  },
});
