import type { AlertChannel } from "@devmesh/contracts/model/rule";
import type { Webhook, WebhookFormat } from "@devmesh/contracts/model/webhook";
import { webhookTitle } from "../webhooks/webhook-words.ts";

/** What the dashboard has of one kind of channel. */
interface KnownChannel<C> {
  readonly label: string;
  /** Where it sends. */
  text(channel: C, webhooks: readonly Webhook[]): string;
}

/** The forms in which a webhook can be sent alerts. */
export const formatNames: Readonly<Record<WebhookFormat, string>> = {
  cloudevents: "CloudEvents",
  slack: "Slack",
  discord: "Discord",
  ntfy: "ntfy",
};

/** The kinds of channels. */
export const channelKinds: {
  readonly [K in AlertChannel["kind"]]: KnownChannel<Extract<AlertChannel, { readonly kind: K }>>;
} = {
  mail: { label: "Mail", text: ({ to }) => to.join(", ") },
  webhook: {
    label: "Webhook",
    text({ webhook_id, format }, webhooks) {
      const webhook = webhooks.find(({ id }) => id === webhook_id);
      return `${webhook === undefined ? webhook_id : webhookTitle(webhook)}, as ${formatNames[format]}`;
    },
  },
};

function kindOf({ kind }: AlertChannel): KnownChannel<never> | undefined {
  return (channelKinds as Readonly<Record<string, KnownChannel<never>>>)[kind];
}

/** How a channel sends, in a word. */
export function channelLabel(channel: AlertChannel): string {
  return kindOf(channel)?.label ?? channel.kind;
}

/** Where a channel sends; `webhooks` are those that are known. */
export function channelText(channel: AlertChannel, webhooks: readonly Webhook[]): string {
  return kindOf(channel)?.text(channel as never, webhooks) ?? "";
}
