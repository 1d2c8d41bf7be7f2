import { createHash } from "node:crypto";
import type { devices } from "@devmesh/contracts/devices";
import type { AlertMail, AlertStorm } from "@devmesh/contracts/mailer";
import type { Alert } from "@devmesh/contracts/model/alert";
import { redactSecrets } from "@devmesh/contracts/model/api-key";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { alertBounds } from "@devmesh/contracts/model/rule";
import type { AlertsMessage } from "@devmesh/contracts/webhook-requests";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import { describeAlert } from "../describe.ts";
import type { AlertStore, StoredAlert } from "../store/alert-store.ts";
import { type ReadOnChange, readOnChange } from "../store/read-on-change.ts";
import type { RuleStore, StoredChannel, StoredRule } from "../store/rule-store.ts";
import type { SendToChannel } from "./channel-sender.ts";
import { chatText, conditionText, valueText } from "./message-text.ts";
import { createSilences } from "./silences.ts";
import { isTooEarly, type MessageParts, messageParts, type Together } from "./storms.ts";

/** Alerts that one message can combine, and those of them that it names. */
const maxTogether = 5_000;
const maxNamed = 20;

/** Messages that a channel gets in a minute: what comes meanwhile is combined in the next one. */
const messagesInMinute = 3;
const minuteMs = 60_000;

/** How old rules may be while nothing waits: the evaluation reads them more often. In milliseconds. */
const rulesAgeMs = 3_000;

/** How often alerts that still fire are looked for, to be sent again, in milliseconds. */
const repeatEveryMs = 10_000;

const callMs = 5_000;

export interface NotifierOptions {
  readonly rules: Pick<RuleStore, "editionOf" | "listChannels" | "listSilences" | "noteSent">;
  readonly readRules: ReadOnChange<readonly StoredRule[]>;
  readonly alerts: Pick<AlertStore, "listUnsent" | "listHeld" | "listToRepeat" | "commit">;
  readonly devices: Pick<Client<typeof devices>, "readDevice" | "selectDevices">;
  readonly send: SendToChannel;
  /** Where people reach the mesh; undefined where nobody has said it. */
  readonly publicUrl: string | undefined;
  /** The most mails of an hour, of which those of people are no part. */
  readonly mailsPerHour: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Characters of a value in an event, whose size the broker limits. */
const maxValue = 1_024;

/** Sends what nobody has been notified of, at least once: it is marked when the queue has stored the message. */
export function createNotifier(options: NotifierOptions) {
  const { rules, readRules, alerts, devices, send, publicUrl, mailsPerHour, clock, log, signal } = options;
  const budget = new TokenBuckets({
    size: mailsPerHour,
    refill: mailsPerHour / 3_600,
    maxBuckets: 1,
    allowDebt: true,
  });

  const readChannels = readOnChange(
    rules,
    "channels",
    (until) => rules.listChannels({ limit: alertBounds.channels }, until),
    clock,
  );
  const silences = createSilences({ rules, alerts, devices, clock, signal });
  let nextRepeatMs = 0;
  /** When messages of the last minute were sent, by channel; of those of another replica the last one is stored. */
  const sentTimes = new Map<string, readonly number[]>();

  /** When a channel got messages in the minute before `now`. A clock that was set back delays none. */
  function recentTimes({ id, sent_at }: StoredChannel, now: number): number[] {
    const times = new Set([...(sentTimes.get(id) ?? []), sent_at]);
    return [...times].filter((at) => at <= now && now - at < minuteMs);
  }

  /** Alerts that still fire, that nobody has acknowledged and that were sent long ago, become unsent again. */
  async function repeatOld(listed: readonly StoredRule[], now: number): Promise<void> {
    const repeated = listed.filter(({ enabled }) => enabled);
    for (const [repeat, same] of Map.groupBy(repeated, ({ repeat }) => repeat)) {
      if (!repeat) continue;
      const rule_ids = same.map(({ id }) => id);
      const sentBefore = now - lengthOf(repeat);
      const due = await alerts.listToRepeat({ rule_ids, sentBefore, limit: maxTogether }, signal);
      const save = due.map((alert) => ({ ...alert, unsent: ["firing" as const] }));
      if (save.length > 0) await alerts.commit({ save, remove: [] }, signal);
    }
  }

  async function nameOf(id: string): Promise<string | null> {
    using call = createCallContext({ timeoutMs: callMs, signal, clock });
    try {
      const { device } = await devices.readDevice({ id, principal: { kind: "master" } }, call);
      return typeof device.name === "string" && device.name !== "" ? device.name : null;
    } catch (error) {
      if (isReason(error, "device_not_found")) return null;
      throw error;
    }
  }

  async function sendTo(channel: StoredChannel, { single, storms: many }: MessageParts): Promise<void> {
    const named: AlertMail["alerts"] = [];
    for (const [alert, rule] of single.slice(0, maxNamed)) {
      named.push({
        alert_id: alert.id,
        state: alert.state === "cleared" ? "cleared" : "firing",
        rule_id: rule.id,
        rule_name: rule.name,
        severity: rule.severity,
        device_id: alert.device_id ?? "",
        device_name: alert.device_id === null ? null : await nameOf(alert.device_id),
        condition: conditionText(rule.when),
        value: valueText(alert.value),
        since: new Date(alert.since).toISOString(),
        note: rule.note,
      });
    }
    const more = single.length - named.length;
    const storms = many.flatMap(describeStorm);
    const revisions = [...single, ...many.flat()].map(([alert]) => `${alert.id} ${alert.revision}`).join();
    const digest = createHash("sha256").update(`${channel.id} ${revisions}`).digest("base64url");
    const shown = single.slice(0, maxNamed).map(([alert]) => withShortValue(describeAlert(alert)));
    const message = {
      id: `alerts-${digest}`,
      mail: { alerts: named, more, storms },
      event: {
        type: "devmesh.alerts",
        data: JSON.parse(
          redactSecrets(JSON.stringify({ alerts: shown, more, storms } satisfies AlertsMessage)),
        ),
      },
      text: chatText({ alerts: named, more, storms }, publicUrl),
    };
    if (await send(channel, message, signal)) return;
    log.warn(
      { channel: channel.id },
      "the webhook of a channel is gone or disabled; its alerts are not sent",
    );
  }

  return {
    /** One round: sends what is due, channel by channel, and marks it. A channel that fails delays no other. */
    async round(): Promise<void> {
      const now = clock.now().getTime();
      await silences.read(now);
      const listed = await readRules(signal, rulesAgeMs);
      if (now >= nextRepeatMs) {
        await repeatOld(listed, now);
        nextRepeatMs = now + repeatEveryMs;
      }
      const known = await readChannels(signal);
      const isDue = (channel: StoredChannel) => recentTimes(channel, now).length < messagesInMinute;
      for (const id of sentTimes.keys())
        if (!known.some((channel) => channel.id === id)) sentTimes.delete(id);
      // What waits for a time must not stand before the alerts of other rules.
      const exceptRules = listed.flatMap(({ id, notify }) => {
        const own = known.filter((channel) => notify.includes(channel.id));
        const isWaiting = own.every((channel) => !isDue(channel) || isTooEarly(channel.storms, id, now));
        return own.length > 0 && isWaiting ? [id] : [];
      });
      const unsent = await silences.apply(
        await alerts.listUnsent({ limit: maxTogether, exceptRules }, signal),
      );
      if (unsent.length === 0) return;
      // Read after the alerts: a rule or channel that is not there by then was deleted, and is no new one.
      const ruleById = new Map((await readRules(signal)).map((rule) => [rule.id, rule]));
      const channels = await readChannels(signal);
      const existing = new Set(channels.map(({ id }) => id));
      const waiting = new Map(unsent.map((alert) => [alert.id, alert]));
      const isDone = ({ rule_id, sent_to }: StoredAlert) =>
        (ruleById.get(rule_id)?.notify ?? []).every((id) => !existing.has(id) || sent_to.includes(id));

      /** Stores that alerts were sent to a channel, or that there is none left to send them to. */
      async function mark(some: readonly StoredAlert[], channelId?: string): Promise<void> {
        const save = some.map((alert) => {
          const sent = {
            ...alert,
            sent_to: [...alert.sent_to, ...(channelId === undefined ? [] : [channelId])],
          };
          return isDone(sent) ? { ...sent, unsent: [], sent_to: [], notified_at: now } : sent;
        });
        if (save.length > 0) await alerts.commit({ save, remove: [] }, signal);
        for (const alert of save) {
          if (alert.unsent.length === 0) waiting.delete(alert.id);
          else waiting.set(alert.id, { ...alert, revision: alert.revision + 1 });
        }
      }

      await mark(unsent.filter(isDone));
      const failures: unknown[] = [];
      for (const channel of channels.filter(isDue)) {
        const of = [...waiting.values()].flatMap((alert) => {
          const rule = ruleById.get(alert.rule_id);
          const isFor = rule?.notify.includes(channel.id) && !alert.sent_to.includes(channel.id);
          return rule !== undefined && isFor ? [[alert, rule] as const] : [];
        });
        const parts = messageParts(of, channel.storms, now);
        const sent = [...parts.single, ...parts.storms.flat()];
        // They wait: what is sent later combines them.
        const mails = channel.kind === "mail" ? channel.to.length : 0;
        const mayMail = budget.tokens("mails", clock.monotonicMs()) >= Math.min(mails, mailsPerHour);
        if (sent.length === 0 || (mails > 0 && !mayMail)) continue;
        try {
          await sendTo(channel, parts);
        } catch (error) {
          failures.push(error);
          continue;
        }
        budget.take("mails", clock.monotonicMs(), mails);
        sentTimes.set(channel.id, [...recentTimes(channel, now), now]);
        await rules.noteSent(channel.id, { sent_at: now, storms: parts.lasting }, signal);
        await mark(
          sent.map(([alert]) => alert),
          channel.id,
        );
      }
      if (failures.length > 0)
        throw new AggregateError(failures, `messages to ${failures.length} channels could not be queued`);
    },
  };
}

/** A storm as messages describe it; none of no alerts. */
function describeStorm(of: Together): AlertStorm[] {
  const [[, rule] = []] = of;
  if (rule === undefined) return [];
  const firing = of.filter(([{ state }]) => state === "firing").length;
  const ids = of.slice(0, maxNamed).map(([{ device_id }]) => device_id ?? "");
  return [
    {
      rule_id: rule.id,
      rule_name: rule.name,
      severity: rule.severity,
      condition: conditionText(rule.when),
      firing,
      cleared: of.length - firing,
      device_ids: ids,
      note: rule.note,
    },
  ];
}

function withShortValue(alert: Alert): Alert {
  return JSON.stringify(alert.value).length > maxValue ? { ...alert, value: null } : alert;
}
