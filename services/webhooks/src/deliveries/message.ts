import { type EventText, frameOfEvent, isAccountFrame } from "@devmesh/contracts/event-frames";
import { CloudEvent } from "@devmesh/contracts/model/cloud-event";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Json } from "@devmesh/contracts/model/json";
import type { Notification } from "@devmesh/contracts/model/notification";
import { WebhookFormat } from "@devmesh/contracts/model/webhook";
import type { DiscordMessage, SlackMessage } from "@devmesh/contracts/webhook-requests";
import { z } from "zod";

/** An event for one webhook, and how it is written. */
export const WebhookDelivery = z.object({
  event: CloudEvent,
  format: WebhookFormat,
  /** The event in words, for chats. */
  text: z.string().optional(),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

/** What is sent in one request, but for its signature. */
export interface RequestBody {
  /** The `webhook-id`. */
  readonly id: string;
  readonly contentType: string;
  readonly body: string;
}

/** Makes events for one API. */
export interface CloudEvents {
  /** `birth` makes the id unique beside the sequence of the frame. */
  ofFrame(frame: Notification, birth: string): CloudEvent;
  ofRecord(record: DataRecord): CloudEvent;
  /** One that is no frame of the stream. */
  of(
    parts: Pick<CloudEvent, "id" | "type" | "time" | "data"> & { readonly subject?: string | undefined },
  ): CloudEvent;
}

/** `source`: the URL of the API. */
export function createCloudEvents(source: string): CloudEvents {
  const event = ({
    id,
    type,
    subject,
    time,
    sequence,
    data,
  }: Parameters<CloudEvents["of"]>[0] & { readonly sequence?: string }): CloudEvent => ({
    specversion: "1.0",
    id,
    source,
    type,
    ...(subject !== undefined && { subject }),
    time,
    ...(sequence !== undefined && { sequence }),
    datacontenttype: "application/json",
    data,
  });
  return {
    of: event,
    ofFrame: ({ seq, id, name, data, timestamp }, birth) =>
      event({
        id: `${birth}-${seq}`,
        type: `devmesh.${name}`,
        subject: id ?? undefined,
        time: timestamp,
        sequence: String(seq).padStart(16, "0"),
        data,
      }),
    ofRecord: (record) =>
      event({
        id: `rec-${record.id}`,
        type: "devmesh.data",
        subject: record.device_id,
        time: record.timestamp,
        data: record as unknown as Json,
      }),
  };
}

/** Whether a webhook asks for a frame of this name. */
export function asksFor(events: readonly string[], name: string): boolean {
  return events.some((one) => one === name || (one.endsWith(".*") && name.startsWith(one.slice(0, -1))));
}

/** The device that a frame is about; null for one of the account or of a job. */
export function deviceOf({ id, name }: Pick<Notification, "id" | "name">): string | null {
  return isAccountFrame(name) || name === "job" ? null : id;
}

/**
 * The frame of a message that came out of the stream of events; null for what is no frame. `source` is its header
 * `Nats-Stream-Source`: `<stream> <sequence> …`.
 */
export function frameOfMessage(subject: string, payload: Uint8Array, source: string): Notification | null {
  const [, service = "", name = ""] = subject.split(".");
  const sequence = Number(source.split(" ")[1]);
  if (!Number.isSafeInteger(sequence)) return null;
  const event: EventText = { sequence, service, name, text: new TextDecoder().decode(payload) };
  return frameOfEvent(event);
}

/** A delivery as its receiver reads it. */
export function bodyOf({ event, format, text = event.type }: WebhookDelivery): RequestBody {
  const { id } = event;
  switch (format) {
    case "cloudevents":
      return { id, contentType: "application/cloudevents+json; charset=utf-8", body: JSON.stringify(event) };
    case "slack":
      return {
        id,
        contentType: json,
        body: JSON.stringify({ text: slackText(text) } satisfies SlackMessage),
      };
    case "discord":
      // Without it a device's name could call everybody.
      return {
        id,
        contentType: json,
        body: JSON.stringify({ content: text, allowed_mentions: { parse: [] } } satisfies DiscordMessage),
      };
    case "ntfy":
      return { id, contentType: "text/plain; charset=utf-8", body: text };
  }
}

const json = "application/json; charset=utf-8";

/** The characters that Slack takes for its own markup. */
function slackText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
