import type { Clock } from "@devmesh/service-kit/clock";
import type { WebhooksMetrics } from "../metrics.ts";
import type { Outcome, RequestSender } from "../requests/sender.ts";
import type { Secrets } from "../requests/signature.ts";
import type { StoredWebhook } from "../store/webhook-store.ts";
import type { Health } from "./health.ts";
import type { RequestBody } from "./message.ts";

/** Sends one signed request. Never rejects. */
export type SendAttempt = (webhook: StoredWebhook, request: RequestBody) => Promise<Outcome>;

export interface SigningOptions {
  readonly sender: Pick<RequestSender, "send">;
  readonly secrets: Pick<Secrets, "sign">;
  readonly clock: Clock;
}

export function createSignedSend({ sender, secrets, clock }: SigningOptions): SendAttempt {
  return async (webhook, { id, contentType, body }) => {
    const signature = secrets.sign(webhook, { id, body }, clock.now().getTime());
    return await sender.send({
      url: webhook.url,
      body,
      headers: { "Content-Type": contentType, ...signature },
    });
  };
}

export interface AttemptsOptions extends SigningOptions {
  readonly health: Pick<Health, "note">;
  readonly metrics: Pick<WebhooksMetrics, "attempts">;
}

/** Attempts that count: they decide whether a webhook fails. */
export function createAttempt({ health, metrics, ...signing }: AttemptsOptions): SendAttempt {
  const send = createSignedSend(signing);
  return async (webhook, request) => {
    const outcome = await send(webhook, request);
    health.note(webhook.id, outcome, signing.clock.now().getTime());
    metrics.attempts.inc({ outcome: outcome.error === null ? "ok" : "failed" });
    return outcome;
  };
}
