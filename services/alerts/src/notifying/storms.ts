import type { StoredAlert } from "../store/alert-store.ts";
import type { StoredRule } from "../store/rule-store.ts";

/** More alerts of a rule that change within a minute are a storm. */
const mostInMinute = 20;
const minuteMs = 60_000;

/** A channel gets one message about a storm in this time, in milliseconds. */
const stormEveryMs = 15 * 60_000;

/** Alerts of one message, each with its rule. */
export type Together = readonly (readonly [StoredAlert, StoredRule])[];

/** What one message to a channel is about. */
export interface MessageParts {
  /** Alerts that it describes one by one. */
  readonly single: Together;
  /** Those of each storm. */
  readonly storms: readonly Together[];
  /** When the channel last got a message about each storm that lasts, by rule; Unix milliseconds. */
  readonly lasting: Readonly<Record<string, number>>;
}

/** Whether a channel got a message about a storm of that rule less than 15 minutes ago. */
export function isTooEarly(lasting: MessageParts["lasting"], ruleId: string, now: number): boolean {
  const at = lasting[ruleId];
  return at !== undefined && at <= now && now - at < stormEveryMs;
}

/** What waits for a channel, but for alerts of a storm of which it got a message less than 15 minutes ago. Pure. */
export function messageParts(waiting: Together, sent: MessageParts["lasting"], now: number): MessageParts {
  const isEarly = (ruleId: string) => isTooEarly(sent, ruleId, now);
  const lasting = Object.fromEntries(Object.entries(sent).filter(([ruleId]) => isEarly(ruleId)));
  const single: Together[number][] = [];
  const storms: Together[] = [];
  for (const [ruleId, of] of Map.groupBy(waiting, ([{ rule_id }]) => rule_id)) {
    if (isEarly(ruleId)) continue;
    if (!isStorm(of)) single.push(...of);
    else {
      storms.push(of);
      lasting[ruleId] = now;
    }
  }
  return { single, storms, lasting };
}

function isStorm(of: Together): boolean {
  const times = of.map(([{ since, fired_at, cleared_at }]) => cleared_at ?? fired_at ?? since);
  times.sort((one, other) => one - other);
  return times.some((at, index) => at - (times[index - mostInMinute] ?? Number.NEGATIVE_INFINITY) < minuteMs);
}
