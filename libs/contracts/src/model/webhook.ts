import { z } from "zod";
import { FunctionName } from "./acl.ts";
import { CloudEvent } from "./cloud-event.ts";
import { DeviceId } from "./device-id.ts";
import { diagnosisFrames } from "./diagnostics.ts";
import { Timestamp } from "./time.ts";

/** Bounds of webhooks (api.md, Webhooks). */
export const webhookLimits = {
  /** Webhooks of an installation. */
  webhooks: 50,
  /** Characters of a URL. */
  url: 2_048,
  events: 50,
  devices: 100,
  labels: 10,
  /** Records of one request, and the milliseconds for which they are collected. */
  batch: 500,
  batchWaitMs: 10_000,
} as const;

/** Frames whose name is fixed that a webhook may ask for. `gap` and `test` come unasked. */
export const webhookFrames = [
  "online",
  "offline",
  "created",
  "updated",
  "deleted",
  "throttled",
  ...diagnosisFrames,
  "execution",
  "job",
  "alert",
  "keys",
  "customers",
  "webhooks",
] as const;

const EventName = z.union(
  [
    z.enum([...webhookFrames, "data"]),
    z.templateLiteral([z.enum(["rpc.in.", "rpc.out."]), z.union([z.literal("*"), FunctionName])]),
  ],
  { error: "must be the name of an event" },
);

/** How the body of a request is written: chats take text alone. */
export const WebhookFormat = z.enum(["cloudevents", "slack", "discord", "ntfy"]).meta({
  description:
    "`cloudevents`: the event as JSON; `slack`, `discord`: the JSON of their incoming webhooks; `ntfy`: text.",
});
export type WebhookFormat = z.infer<typeof WebhookFormat>;

/** A URL as sessions read it: path and query of chats are secrets, and its receiver may take a key in them. */
export function redactUrl(url: string): string {
  const parsed = URL.parse(url);
  return `${parsed === null ? "" : parsed.origin}/…`;
}

/** Whether somebody wrote a redacted URL, also as a URL escapes it. */
export const isRedactedUrl = (url: string): boolean => /…|%E2%80%A6/i.test(url);

const distinct = (items: readonly unknown[]) => new Set(items).size === items.length;
/** Null is a value; the description stays. */
const orNull = <T extends z.ZodType>(schema: T) => schema.nullable().describe(schema.description ?? "");
const twice = "must not have an item twice";

const members = {
  name: z.string().min(1).max(60).describe("What people call it."),
  url: z.string().min(1).max(webhookLimits.url).meta({
    description:
      "Where requests go: `https:`, without user, password and key of this mesh. Its addresses must be public, unless `WEBHOOK_ALLOW_NETWORKS` has them. A session reads its origin and `/…`.",
    example: "https://example.com/devmesh",
  }),
  events: z
    .array(EventName)
    .max(webhookLimits.events)
    .refine(distinct, twice)
    .meta({
      description:
        "Names of frames of the notification stream; `rpc.in.*` and `rpc.out.*` are those of all functions and events, `data` records. None: only what an alert's channel sends.",
      example: ["offline", "rpc.out.alarm"],
    }),
  devices: z
    .array(DeviceId)
    .min(1)
    .max(webhookLimits.devices)
    .refine(distinct, twice)
    .describe("Only events of these devices, and those of no device."),
  labels: z
    .array(z.string().min(1).max(256))
    .min(1)
    .max(webhookLimits.labels)
    .refine(distinct, twice)
    .describe("Only events of devices that have one of these labels, and those of no device."),
  records: z
    .strictObject({
      batch: z.int().min(1).max(webhookLimits.batch).describe("Most records of a request."),
      wait_ms: z
        .int()
        .min(0)
        .max(webhookLimits.batchWaitMs)
        .describe("How long a batch waits to be full, in milliseconds."),
    })
    .meta({
      id: "WebhookRecords",
      description: "How records are sent: `{batch: 1, wait_ms: 0}` without it.",
    }),
};

const example = { url: "https://example.com/devmesh", events: ["offline", "rpc.out.alarm"] };

/** The body of `POST /webhooks`. */
export const WebhookInput = z
  .strictObject({
    url: members.url,
    events: members.events,
    name: members.name.optional(),
    devices: members.devices.optional(),
    labels: members.labels.optional(),
    records: members.records.optional(),
  })
  .meta({ id: "WebhookInput", description: "A URL, and what is sent to it.", example });
export type WebhookInput = z.infer<typeof WebhookInput>;

/** The body of `POST /webhooks/:id`. */
export const WebhookPatch = z
  .strictObject({
    url: members.url.optional(),
    events: members.events.optional(),
    name: orNull(members.name).optional(),
    devices: orNull(members.devices).optional(),
    labels: orNull(members.labels).optional(),
    records: members.records.optional(),
    enabled: z
      .boolean()
      .optional()
      .describe("`false` drops what waits; `true` begins again, with what happens from then on."),
  })
  .meta({
    id: "WebhookPatch",
    description: "Changes of a webhook; what is left out stays, null removes.",
    example: { enabled: true },
  });
export type WebhookPatch = z.infer<typeof WebhookPatch>;

/** Why a webhook gets nothing: a caller, an answer 410, or three days of failures. */
export const DisabledBecause = z.enum(["by_hand", "gone", "failing"]);

/** Why a request was no success, in words that may change; never what the receiver wrote. */
const Failure = z
  .object({
    at: Timestamp.describe("When it failed."),
    status: z.int().nullable().describe("Status code of the answer; null without one."),
    error: z.string().describe("Why it counts as a failure."),
  })
  .meta({ id: "WebhookFailure", description: "A request that failed." });

const WebhookState = z
  .object({
    waiting: z
      .int()
      .min(0)
      .nullable()
      .describe("Number of events that wait; null while the broker does not say."),
    dead: z
      .int()
      .min(0)
      .nullable()
      .describe("Number of events that were given up and are kept; null as `waiting`."),
    oldest: Timestamp.nullable().describe("When the oldest of those that wait was published."),
    failing_since: Timestamp.nullable().describe("First failure after the last success."),
    last_success_at: Timestamp.nullable().describe("Last success; null before the first."),
    last_failure: Failure.nullable().describe("Last failure; null before the first."),
  })
  .meta({ id: "WebhookState", description: "What became of the events of a webhook." });

const webhookExample = {
  id: "wh_0198c2a0b7f1",
  name: null,
  ...example,
  devices: null,
  labels: null,
  records: { batch: 1, wait_ms: 0 },
  enabled: true,
  disabled_because: null,
  created_at: "2026-01-31T12:00:00.000Z",
  state: {
    waiting: 0,
    dead: 0,
    oldest: null,
    failing_since: null,
    last_success_at: "2026-01-31T12:00:00.000Z",
    last_failure: null,
  },
};

/** A URL, and what is sent to it (api.md, Webhooks). */
export const Webhook = z
  .object({
    id: z.string().meta({ description: "Id of the webhook; no secret.", example: "wh_0198c2a0b7f1" }),
    name: orNull(members.name),
    url: members.url,
    events: members.events,
    devices: orNull(members.devices),
    labels: orNull(members.labels),
    records: members.records,
    enabled: z.boolean().describe("Whether it gets anything."),
    disabled_because: DisabledBecause.nullable().meta({
      description:
        "`by_hand`; `gone`: the receiver answered 410; `failing`: no success in three days and twenty attempts.",
    }),
    created_at: Timestamp.describe("When it was created."),
    state: WebhookState.describe("What became of its events."),
  })
  .meta({
    id: "Webhook",
    description: "A URL, and what is sent to it.",
    example: webhookExample,
  });
export type Webhook = z.infer<typeof Webhook>;

/** A secret that signs requests, as libraries of Standard Webhooks take it. */
export const WebhookSecret = z
  .object({
    secret: z.string().meta({
      description: "Signs the requests: `whsec_` and base64.",
      example: "whsec_...",
    }),
  })
  .meta({
    id: "WebhookSecret",
    description: "The secret of a webhook.",
    example: { secret: "whsec_..." },
  });

/** The answer of `POST /webhooks`. */
export const CreatedWebhook = z.object({ ...Webhook.shape, ...WebhookSecret.shape }).meta({
  id: "CreatedWebhook",
  description: "A webhook and, only here, its secret.",
  example: { ...webhookExample, secret: "whsec_..." },
});

/** The answer of `POST /webhooks/:id/test`. */
export const WebhookTest = z
  .object({
    status: z.int().nullable().describe("Status code of the answer; null without one."),
    error: z.string().nullable().describe("Why it counts as a failure; null for a success."),
    duration_ms: z.int().min(0).describe("How long it took, in milliseconds."),
  })
  .meta({
    id: "WebhookTest",
    description: "What became of one request.",
    example: { status: 204, error: null, duration_ms: 87 },
  });
export type WebhookTest = z.infer<typeof WebhookTest>;

/** An event that was given up. */
export const DeadDelivery = z
  .object({
    id: z.string().describe("Id of the dead letter."),
    event_id: z.string().describe("The `webhook-id` of its requests."),
    type: z.string().describe("Type of the event, such as `devmesh.offline`."),
    attempts: z.int().min(0).describe("Number of requests."),
    status: z.int().nullable().describe("Status code of the last answer; null without one."),
    error: z.string().describe("Why the last request failed."),
    failed_at: Timestamp.describe("When it was given up."),
    event: CloudEvent.describe("The event, as it is sent."),
  })
  .meta({
    id: "DeadDelivery",
    description: "An event that was given up.",
    example: {
      id: "17",
      event_id: "mh2k9x1c-12345",
      type: "devmesh.offline",
      attempts: 32,
      status: 500,
      error: "status 500",
      failed_at: "2026-01-31T12:00:00.000Z",
      event: {
        specversion: "1.0",
        id: "mh2k9x1c-12345",
        source: "https://devmesh.example.com/api/v2",
        type: "devmesh.offline",
        subject: "pump-1",
        time: "2026-01-30T12:00:00.000Z",
        sequence: "0000000000012345",
        datacontenttype: "application/json",
        data: {},
      },
    },
  });
export type DeadDelivery = z.infer<typeof DeadDelivery>;
