import type { AlertMail, alertMailQueue } from "@devmesh/contracts/mailer";
import type { CloudEvent } from "@devmesh/contracts/model/cloud-event";
import type { webhooks as contract } from "@devmesh/contracts/webhooks";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Producer } from "@devmesh/service-kit/queue/producer";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallInput, Client } from "@devmesh/service-kit/rpc/implementation";
import type { StoredChannel } from "../store/rule-store.ts";

const callMs = 5_000;

export interface ChannelSenderOptions {
  readonly mail: Producer<typeof alertMailQueue>;
  readonly webhooks: Pick<Client<typeof contract>, "deliver">;
  readonly clock: Clock;
}

/** A message in the forms of all channels. */
export interface ChannelMessage {
  /** A message that has the id of an earlier one is not sent again for some minutes. */
  readonly id: string;
  readonly mail: Omit<AlertMail, "to">;
  readonly event: Pick<CloudEvent, "type" | "data">;
  readonly text: string;
}

export type SendToChannel = ReturnType<typeof createChannelSender>;

/** Queues messages; false where the webhook of the channel is gone or disabled. */
export function createChannelSender({ mail, webhooks, clock }: ChannelSenderOptions) {
  return async (channel: StoredChannel, message: ChannelMessage, signal: AbortSignal): Promise<boolean> => {
    const { id } = message;
    if (channel.kind === "mail") {
      for (const to of channel.to) await mail.enqueue({ ...message.mail, to }, { dedupeId: `${id}-${to}` });
      return true;
    }
    const delivery: CallInput<typeof contract, "deliver"> = {
      webhook_id: channel.webhook_id,
      format: channel.format,
      event: { ...message.event, id, time: clock.now().toISOString() },
      text: message.text,
    };
    using call = createCallContext({ timeoutMs: callMs, signal, clock });
    try {
      await webhooks.deliver(delivery, call);
      return true;
    } catch (error) {
      if (isReason(error, "webhook_not_found") || isReason(error, "webhook_disabled")) return false;
      throw error;
    }
  };
}
