import type { DeadDelivery } from "@devmesh/contracts/model/webhook";
import type { EventOutbox, OutboxMessage, StoredLetter } from "@devmesh/service-kit/events/event-outbox";
import { z } from "zod";
import type { Outcome } from "../requests/sender.ts";
import type { StoredWebhook } from "../store/webhook-store.ts";
import { deviceOf, WebhookDelivery } from "./message.ts";

/** A dead letter as its stream keeps it. */
const Letter = z.object({
  delivery: WebhookDelivery,
  attempts: z.int(),
  status: z.int().nullable(),
  error: z.string(),
});
type Letter = z.infer<typeof Letter>;

/** Stores what was given up, once. Rejects unless it is stored. */
export async function storeDeadLetter(
  outbox: Pick<EventOutbox, "bury">,
  { id }: Pick<StoredWebhook, "id">,
  given: { readonly delivery: WebhookDelivery; readonly outcome: Outcome; readonly message: OutboxMessage },
): Promise<void> {
  const { delivery, outcome, message } = given;
  const { type, subject = null, id: eventId } = delivery.event;
  const letter: Letter = {
    delivery,
    attempts: message.deliveries,
    status: outcome.status,
    error: outcome.error ?? "",
  };
  const about = deviceOf({ id: subject, name: type.replace(/^devmesh\./, "") });
  const isToken = about !== null && /^[A-Za-z0-9_-]{1,64}$/.test(about);
  const dedupeId = `${id}/${eventId}/${message.storedAt.getTime()}`;
  await outbox.bury(id, isToken ? about : null, JSON.stringify(letter), dedupeId);
}

/** A dead letter as the API shows it; null for one that another release stored in another form. */
export function describeDeadLetter({ sequence, payload, storedAt }: StoredLetter): DeadDelivery | null {
  const letter = readLetter(payload);
  if (letter === null) return null;
  const { delivery, attempts, status, error } = letter;
  const { event } = delivery;
  const failed_at = storedAt.toISOString();
  return {
    id: String(sequence),
    event_id: event.id,
    type: event.type,
    attempts,
    status,
    error,
    failed_at,
    event,
  };
}

/** Queues a dead letter again, then deletes it; a crash between the two leaves both. */
export async function retryDeadLetter(
  outbox: Pick<EventOutbox, "publish" | "deleteLetter">,
  id: string,
  { sequence, payload, storedAt }: StoredLetter,
): Promise<void> {
  const letter = readLetter(payload);
  if (letter !== null)
    await outbox.publish(id, JSON.stringify(letter.delivery), `retry-${sequence}-${storedAt.getTime()}`);
  await outbox.deleteLetter(sequence);
}

function readLetter(payload: Uint8Array): Letter | null {
  const parsed = Letter.safeParse(JSON.parse(new TextDecoder().decode(payload)));
  return parsed.success ? parsed.data : null;
}
