import type { Webhook, WebhookTest } from "@devmesh/contracts/model/webhook";
import { durationText } from "../../components/number-text.ts";
import type { StateLook } from "../../components/state.tsx";

const disabledReasons: Readonly<Record<NonNullable<Webhook["disabled_because"]>, string>> = {
  by_hand: "by hand",
  gone: "the receiver is gone",
  failing: "it failed for three days",
};

/** The state of a webhook: "disabled: the receiver is gone". */
export function webhookStateText({ enabled, disabled_because, state }: Webhook): string {
  if (!enabled) {
    const reason = disabled_because === null ? null : (disabledReasons[disabled_because] ?? disabled_because);
    return reason === null ? "disabled" : `disabled: ${reason}`;
  }
  return state.failing_since === null ? "enabled" : "failing";
}

export function webhookLook({ enabled, disabled_because, state }: Webhook): StateLook {
  if (!enabled) return disabled_because === "by_hand" ? "idle" : "bad";
  return state.failing_since === null ? "good" : "warn";
}

/** What a webhook is called: its name, else the host and path of its URL. */
export function webhookTitle({ name, url }: Pick<Webhook, "name" | "url">): string {
  return name ?? url.replace(/^https?:\/\//, "");
}

/** What became of a test. */
export function testText({ status, error, duration_ms }: WebhookTest): string {
  const time = durationText(duration_ms);
  if (error === null) return `It arrived: status ${status ?? "unknown"}, in ${time}.`;
  return `It did not arrive: ${error}, after ${time}.`;
}
