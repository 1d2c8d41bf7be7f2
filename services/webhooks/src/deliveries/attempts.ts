import type { Clock } from "@devmesh/service-kit/clock";
import type { WebhooksMetrics } from "../metrics.ts";
import type { Outcome, RequestSender } from "../requests/sender.ts";
import type { Secrets } from "../requests/signature.ts";
import type { StoredWebhook } from "../store/webhook-store.ts";
import type { Health } from "./health.ts";
import type { RequestBody } from "./message.ts";

/** Sends one signed request. */
export type SendAttempt = (webhook: StoredWebhook, request: RequestBody) => Promise<Outcome>;

/** Sends one signed request, until `signal` ends it. Never rejects. */
export type SignedSend = (
  webhook: StoredWebhook,
  request: RequestBody,
  signal: AbortSignal,
) => Promise<Outcome>;

export interface SigningOptions {
  readonly sender: Pick<RequestSender, "send">;
  readonly secrets: Pick<Secrets, "sign">;
  readonly clock: Clock;
}

export function createSignedSend({ sender, secrets, clock }: SigningOptions): SignedSend {
  return async (webhook, { id, contentType, body }, signal) => {
    const signature = secrets.sign(webhook, { id, body }, clock.now().getTime());
    const headers = { "Content-Type": contentType, ...signature };
    return await sender.send({ url: webhook.url, body, headers }, signal);
  };
}

export interface AttemptsOptions extends SigningOptions {
  readonly health: Pick<Health, "note">;
  readonly metrics: Pick<WebhooksMetrics, "attempts">;
  /** Ends the requests that are under way, when the service stops. */
  readonly signal: AbortSignal;
}

/** Attempts that count: they decide whether a webhook fails. One that `signal` ends is none: it rejects. */
export function createAttempt({ health, metrics, signal, ...signing }: AttemptsOptions): SendAttempt {
  const send = createSignedSend(signing);
  return async (webhook, request) => {
    const outcome = await send(webhook, request, signal);
    if (outcome.error !== null) signal.throwIfAborted();
    health.note(webhook.id, outcome, signing.clock.now().getTime());
    metrics.attempts.inc({ outcome: outcome.error === null ? "ok" : "failed" });
    return outcome;
  };
}
