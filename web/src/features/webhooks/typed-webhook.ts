import { type Webhook, WebhookInput, WebhookPatch } from "@devmesh/contracts/model/webhook";
import { readBody } from "../../components/use-checked-form.ts";

/** A webhook as it is typed. */
export interface TypedWebhook {
  readonly name: string;
  readonly url: string;
  readonly events: string[];
  readonly devices: string[];
  readonly labels: string[];
  readonly batch: number | string;
  readonly wait_ms: number | string;
}

export const emptyWebhook: TypedWebhook = {
  name: "",
  url: "",
  events: ["offline"],
  devices: [],
  labels: [],
  batch: 1,
  wait_ms: 0,
};

/** The body of a new webhook, or what is wrong in its fields. */
export function readNewWebhook(typed: TypedWebhook) {
  const { name, url, events, devices, labels } = typed;
  const body = {
    url: url.trim(),
    events,
    ...(name.trim() !== "" && { name: name.trim() }),
    ...(devices.length > 0 && { devices }),
    ...(labels.length > 0 && { labels }),
    ...(sendsRecords(typed) && { records: recordsOf(typed) }),
  };
  return readBody<TypedWebhook, typeof WebhookInput>(WebhookInput, body, webhookField);
}

/** The body of a change, or what is wrong in its fields; empty members are removed, an unchanged URL is left out. */
export function readWebhookPatch(typed: TypedWebhook, before: Pick<Webhook, "url">) {
  const { name, url, events, devices, labels } = typed;
  const body = {
    ...(url.trim() !== before.url && { url: url.trim() }),
    events,
    name: name.trim() || null,
    devices: devices.length > 0 ? devices : null,
    labels: labels.length > 0 ? labels : null,
    ...(sendsRecords(typed) && { records: recordsOf(typed) }),
  };
  return readBody<TypedWebhook, typeof WebhookPatch>(WebhookPatch, body, webhookField);
}

/** Whether records are among the events. */
export function sendsRecords({ events }: Pick<TypedWebhook, "events">): boolean {
  return events.includes("data");
}

function recordsOf({ batch, wait_ms }: TypedWebhook) {
  return { batch: Number(batch || 1), wait_ms: Number(wait_ms || 0) };
}

/** The field that a member of the body comes from. */
export function webhookField(pointer: string): keyof TypedWebhook {
  const [, first = "", second = ""] = pointer.split("/");
  const name = first === "records" ? second : first;
  return name in emptyWebhook ? (name as keyof TypedWebhook) : "url";
}

export function webhookAsTyped({ name, url, events, devices, labels, records }: Webhook): TypedWebhook {
  return {
    name: name ?? "",
    url,
    events: [...events],
    devices: [...(devices ?? [])],
    labels: [...(labels ?? [])],
    batch: records.batch,
    wait_ms: records.wait_ms,
  };
}
