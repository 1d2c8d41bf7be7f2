import { z } from "zod";
import { keyEvents } from "./keys.ts";
import { AlertStorm } from "./mailer.ts";
import { Alert } from "./model/alert.ts";
import { DataRecord } from "./model/data-record.ts";
import { Device } from "./model/device.ts";
import { Diagnosis } from "./model/diagnostics.ts";
import { Execution } from "./model/execution.ts";
import { Job } from "./model/job.ts";
import { JsonValue } from "./model/json.ts";
import { Throttling } from "./model/notification.ts";
import { Timestamp } from "./model/time.ts";
import type { webhookFrames } from "./model/webhook.ts";
import { webhookEvents } from "./webhooks.ts";

/** Headers of each request of a webhook (api.md, Webhooks). */
export const WebhookHeaders = z.object({
  "webhook-id": z
    .string()
    .describe("`id` of the event, or `rec-FIRST-LAST` of a batch; the same at each attempt."),
  "webhook-timestamp": z.string().describe("Unix seconds of the attempt."),
  "webhook-signature": z
    .string()
    .describe(
      "`v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`; two with a blank between for 24 h after a replacement of the secret.",
    ),
});

/** `data` of `devmesh.alerts`, which the webhook of a channel gets. */
export const AlertsMessage = z
  .object({
    alerts: z.array(Alert).describe("Up to 20, as `GET /alerts/:id` shows them; a long value is null."),
    more: z.int().min(0).describe("How many there are besides those."),
    storms: z.array(AlertStorm).describe("Rules with more than 20 alerts within a minute."),
  })
  .meta({
    id: "AlertsMessage",
    description: "Alerts that fired or cleared together.",
    example: { alerts: [z.globalRegistry.get(Alert)?.example], more: 0, storms: [] },
  });
export type AlertsMessage = z.output<typeof AlertsMessage>;

/** Of `format: "slack"`. */
export const SlackMessage = z
  .object({ text: z.string().describe("The alerts in words, without markup.") })
  .meta({
    id: "SlackMessage",
    description: "Alerts in words, as Slack takes them.",
    example: { text: "Firing: Too warm (critical), pump-1: temp /celsius &gt; 80, value 91" },
  });
export type SlackMessage = z.output<typeof SlackMessage>;

/** Of `format: "discord"`. */
export const DiscordMessage = z
  .object({
    content: z.string().describe("The alerts in words."),
    allowed_mentions: z.object({ parse: z.array(z.string()).max(0) }).describe("Nobody is mentioned."),
  })
  .meta({
    id: "DiscordMessage",
    description: "Alerts in words, as Discord takes them.",
    example: {
      content: "Firing: Too warm (critical), pump-1: temp /celsius > 80, value 91",
      allowed_mentions: { parse: [] },
    },
  });
export type DiscordMessage = z.output<typeof DiscordMessage>;

/** An event that webhooks send. */
interface SentEvent {
  readonly summary: string;
  /** The schema of `data`. */
  readonly data: z.ZodType;
  /** Of `data`. */
  readonly example: unknown;
}

const described = (summary: string, data: z.ZodType): SentEvent => ({
  summary,
  data,
  example: z.globalRegistry.get(data)?.example,
});
const bare = (summary: string): SentEvent => ({ summary, data: z.object({}), example: {} });
const OneDiagnosis = Diagnosis.omit({ name: true });
const diagnosed = (summary: string, found: Partial<Diagnosis>): SentEvent => {
  const { name: _, ...example } = Diagnosis.parse(z.globalRegistry.get(Diagnosis)?.example);
  return { summary, data: OneDiagnosis, example: { ...example, ...found } };
};
const changed = (summary: string, schema: z.ZodObject<{ change: z.ZodEnum }>): SentEvent => ({
  summary,
  data: schema.pick({ change: true }),
  example: { change: schema.shape.change.options[0] },
});

type SentEventName =
  | (typeof webhookFrames)[number]
  | "rpc.in.*"
  | "rpc.out.*"
  | "data"
  | "alerts"
  | "gap"
  | "test";

/**
 * What webhooks send, by the name after `devmesh.` in `type`; `*` is the name of a function or an event. `alerts` comes
 * from a channel; `gap` and `test` come unasked.
 */
export const sentEvents: Readonly<Record<SentEventName, SentEvent>> = {
  online: bare("A device has a connection."),
  offline: bare("A device has had no connection for 2 s."),
  created: described("A device was created; `data` is the device.", Device),
  updated: described("Name, ACL or shadow of a device changed; `data` is the device.", Device),
  deleted: bare("A device was deleted."),
  throttled: {
    summary: "A device did too much; its connections are closed.",
    data: Throttling,
    example: { why: "messages", refused_ms: 60_000 },
  },
  login_refused: diagnosed("A login was refused.", {}),
  session_taken_over: diagnosed("A second client took over a client id.", { reason: "duplicate_client_id" }),
  subscription_limit: diagnosed("A device has too many subscriptions.", {
    reason: "acknowledged_subscriptions",
  }),
  allowance_exceeded: diagnosed("A device publishes more than it may.", { reason: "messages" }),
  publication_refused: diagnosed("A message was not taken.", { reason: "not_json", topic: "pump-1/rpc" }),
  subscription_refused: diagnosed("A subscription was refused.", { reason: "topic", topic: "pump-2/rpc" }),
  execution: described("An execution was created or has ended.", Execution),
  job: described("A job has changed.", Job),
  alert: described("An alert fired, was acknowledged or cleared.", Alert),
  keys: changed("A key or a session has changed.", keyEvents.events.key_changed.schema),
  customers: changed("A customer has changed.", keyEvents.events.customer_changed.schema),
  webhooks: changed("A webhook has changed.", webhookEvents.events.webhook_changed.schema),
  "rpc.in.*": {
    summary: "A call was sent to a device; `data` is its parameters.",
    data: JsonValue,
    example: { mode: "eco" },
  },
  "rpc.out.*": {
    summary: "A device published on `ID/event/NAME`; `data` is what it published.",
    data: JsonValue,
    example: { celsius: 91 },
  },
  data: described("A stored record.", DataRecord),
  alerts: described("Alerts that fired or cleared, to the webhook of a channel.", AlertsMessage),
  gap: {
    summary: "Events between these times were dropped.",
    data: z.object({ from: Timestamp, until: Timestamp }),
    example: { from: "2026-01-30T12:00:00.000Z", until: "2026-01-31T12:00:00.000Z" },
  },
  test: bare("Of `POST /webhooks/:id/test`."),
};
