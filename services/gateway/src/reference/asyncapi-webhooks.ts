import { CloudEvent } from "@devmesh/contracts/model/cloud-event";
import { DataRecord } from "@devmesh/contracts/model/data-record";
import {
  DiscordMessage,
  SlackMessage,
  sentEvents,
  WebhookHeaders,
} from "@devmesh/contracts/webhook-requests";
import { z } from "zod";
import { schemaOf } from "./asyncapi-schema.ts";

interface SentMessage {
  readonly name: string;
  readonly summary: string;
  readonly contentType: string;
  readonly payload: z.ZodType;
  readonly example: unknown;
}

const exampleOf = (schema: z.ZodType): unknown => z.globalRegistry.get(schema)?.example;

/** All messages of webhooks: an event each, a batch of records, and alerts in words. */
function sentMessages(): SentMessage[] {
  const example = CloudEvent.parse(exampleOf(CloudEvent));
  const withData = (name: string, type: z.ZodType, data: z.ZodType) => ({
    name: `webhook.${name}`,
    contentType: "application/cloudevents+json",
    payload: z.intersection(CloudEvent, z.object({ type, data })),
  });
  const events = Object.entries(sentEvents).map(([name, { summary, data, example: sent }]): SentMessage => {
    const [family = "", rest] = name.split("*");
    const type =
      rest === undefined
        ? z.literal(`devmesh.${name}`)
        : z.templateLiteral([`devmesh.${family}`, z.string().min(1)]);
    const named = rest === undefined ? name : `${family}Name`;
    return {
      ...withData(rest === undefined ? name : family.slice(0, -1), type, data),
      summary,
      example: { ...example, type: `devmesh.${named}`, data: sent },
    };
  });
  const words = { summary: "Alerts in words, to the webhook of a channel." };
  return [
    ...events,
    {
      name: "webhook.data.batch",
      summary: "Stored records, of a webhook whose `records.batch` is more than 1.",
      contentType: "application/cloudevents-batch+json",
      payload: z.array(CloudEvent),
      example: [{ ...example, type: "devmesh.data", data: exampleOf(DataRecord) }],
    },
    {
      ...words,
      name: "webhook.slack",
      contentType: "application/json",
      payload: SlackMessage,
      example: exampleOf(SlackMessage),
    },
    {
      ...words,
      name: "webhook.discord",
      contentType: "application/json",
      payload: DiscordMessage,
      example: exampleOf(DiscordMessage),
    },
    {
      ...words,
      name: "webhook.ntfy",
      contentType: "text/plain",
      payload: z.string(),
      example: DiscordMessage.parse(exampleOf(DiscordMessage)).content,
    },
  ];
}

/** The parts of the AsyncAPI document about webhooks, of which `server` is the URL of a webhook. */
export function describeWebhooks(schemas: Record<string, unknown>) {
  const sent = sentMessages();
  const reference = ({ name }: SentMessage) => ({ $ref: `#/channels/webhook/messages/${name}` });
  return {
    server: {
      host: "{receiver}",
      protocol: "https",
      description: "The URL of a webhook (`POST /webhooks`), to which Devmesh sends requests.",
      variables: { receiver: { description: "Its host and path.", examples: ["example.com/devmesh"] } },
    },
    channel: {
      address: null,
      summary: "The requests of a webhook.",
      servers: [{ $ref: "#/servers/receiver" }],
      messages: Object.fromEntries(sent.map(({ name }) => [name, { $ref: `#/components/messages/${name}` }])),
    },
    operation: {
      action: "receive",
      channel: { $ref: "#/channels/webhook" },
      summary: "A receiver gets what the webhook asks for, at least once, and answers 2xx.",
      messages: sent.map(reference),
      bindings: { http: { method: "POST", bindingVersion: "0.3.0" } },
    },
    messages: Object.fromEntries(
      sent.map(({ payload, example, ...message }) => [
        message.name,
        {
          ...message,
          headers: { $ref: "#/components/schemas/WebhookHeaders" },
          payload: schemaOf(payload, "output", schemas),
          examples: [{ payload: example }],
        },
      ]),
    ),
    headers: schemaOf(WebhookHeaders, "output", schemas),
  };
}
