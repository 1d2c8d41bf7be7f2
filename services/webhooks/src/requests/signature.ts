import { createHmac } from "node:crypto";

const day = 86_400_000;

/** Which secret of a webhook is valid, and since when. */
interface SecretGeneration {
  readonly id: string;
  readonly generation: number;
  /** Unix milliseconds. */
  readonly generation_at: number;
}

/** The secrets of webhooks, derived from one key: none is stored. */
export interface Secrets {
  /** As libraries of Standard Webhooks take it. */
  secretOf(webhook: Pick<SecretGeneration, "id" | "generation">): string;
  /** Whether the former secret still signs, for a day after the replacement. */
  signsTwice(webhook: SecretGeneration, nowMs: number): boolean;
  /** The headers of one attempt (Standard Webhooks 1.0). */
  sign(
    webhook: SecretGeneration,
    message: { readonly id: string; readonly body: string },
    nowMs: number,
  ): Record<string, string>;
}

export function createSecrets(key: Uint8Array): Secrets {
  const derive = (id: string, generation: number) =>
    createHmac("sha256", key).update(`webhook/${id}/${generation}`).digest();

  const signsTwice = ({ generation, generation_at }: SecretGeneration, nowMs: number) =>
    generation > 1 && nowMs - generation_at < day;

  return {
    signsTwice,
    secretOf: ({ id, generation }) => `whsec_${derive(id, generation).toString("base64")}`,
    sign(webhook, { id, body }, nowMs) {
      const { generation } = webhook;
      const timestamp = String(Math.floor(nowMs / 1_000));
      const generations = signsTwice(webhook, nowMs) ? [generation, generation - 1] : [generation];
      const signatures = generations.map((one) => {
        const secret = derive(webhook.id, one);
        return `v1,${createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
      });
      return {
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signatures.join(" "),
      };
    },
  };
}
