import { lengthOf } from "@devmesh/contracts/model/duration";
import type { AlertChanges, Round, Sighting } from "./alert-changes.ts";
import { type DeviceFrame, deviceFrameOf, type EventSource, subscriptionsOf } from "./device-feed.ts";
import { EventCounts, type Turn } from "./event-counts.ts";
import type { RuleOf } from "./rule-book.ts";

/** Frames that wait to be counted; with more, those that the broker keeps are read again. */
const maxWaiting = 50_000;

export interface EventRulesOptions {
  readonly source: EventSource;
  readonly changes: AlertChanges;
  /** Those of these devices that a rule is for. */
  readonly select: (where: RuleOf<"event">["where"], ids: readonly string[]) => Promise<Set<string>>;
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/** The counts of a rule on events. */
export function countsOf({ when }: RuleOf<"event">): EventCounts {
  return new EventCounts({ count: when.count, withinMs: lengthOf(when.within) });
}

/** The frames of these names that the broker keeps, up to a sequence. */
export async function readFrames(
  source: Pick<EventSource, "replay">,
  names: readonly string[],
  { until, signal }: { readonly until: number; readonly signal: AbortSignal },
): Promise<DeviceFrame[]> {
  const read: DeviceFrame[] = [];
  const options = { after: 0, until: () => until, about: undefined, signal };
  for await (const { events } of source.replay(subscriptionsOf(names), options))
    for (const event of events) {
      const frame = event.sequence <= until ? deviceFrameOf(event) : null;
      if (frame !== null && names.includes(frame.name)) read.push(frame);
    }
  return read;
}

/** Counts frames for rules on events. What was counted before a start is what the broker keeps, an hour. */
export function createEventRules({ source, changes, select, now, onFailure, signal }: EventRulesOptions) {
  let counted = "";
  let names: readonly string[] = [];
  let counts = new Map<string, EventCounts>();
  let waiting: DeviceFrame[] = [];
  /** The last sequence that was received; null before the first. */
  let position: number | null = null;
  let state: "cold" | "reading" | "warm" = "cold";

  /** Begins again with what the broker keeps. */
  function restart(): void {
    counts = new Map();
    waiting = [];
    state = "cold";
  }

  async function readPast(until: number): Promise<void> {
    const mine = counts;
    const past = await readFrames(source, names, { until, signal });
    // It was begun again meanwhile.
    if (mine !== counts) return;
    waiting = [...past, ...waiting.filter(({ seq }) => seq > until)];
    state = "warm";
  }

  async function see(round: Round, rule: RuleOf<"event">, turns: readonly Turn[]): Promise<void> {
    const isOpen = (device_id: string) => round.open.has({ rule_id: rule.id, device_id });
    const begins = turns.filter(({ device_id, holds }) => holds && !isOpen(device_id));
    const found = await select(rule.where, [...new Set(begins.map(({ device_id }) => device_id))]);
    const sightings: Sighting[] = turns
      .filter(({ device_id }) => isOpen(device_id) || found.has(device_id))
      .map(({ device_id, holds, at }) => ({ device_id, holds, at, value: rule.when.count, holdMs: 0 }));
    await changes.see(round, rule, sightings, { isRepeated: true });
  }

  return {
    /** Frames follow after there; others may be missing before. */
    began(after: number): void {
      position = after;
      restart();
    },

    take(frame: DeviceFrame): void {
      position = Math.max(position ?? 0, frame.seq);
      if (state === "cold" || !names.includes(frame.name)) return;
      waiting.push(frame);
      if (waiting.length > maxWaiting) restart();
    },

    /** Begins again, as after a failure: what was counted may not be stored. */
    restart,

    /** Fires and clears by what was counted, up to now. */
    async evaluate(round: Round): Promise<void> {
      const rules = round.book.event;
      const key = JSON.stringify(rules.map(({ id, epoch }) => [id, epoch]));
      if (key !== counted) restart();
      counted = key;
      names = [...new Set(rules.map(({ when }) => when.name))];
      if (rules.length === 0 || position === null) return;
      if (state === "cold") {
        state = "reading";
        const reading = counts;
        readPast(position).catch((error: unknown) => {
          if (reading === counts) state = "cold";
          onFailure(error);
        });
      }
      if (state !== "warm") return;
      const frames = waiting;
      waiting = [];
      const stored = round.progress.events ?? 0;
      // A stream that was made again counts from the beginning.
      const cursor = stored > position ? 0 : stored;
      for (const rule of rules) {
        const own = counts.get(rule.id) ?? countsOf(rule);
        const isFirst = !counts.has(rule.id);
        counts.set(rule.id, own);
        const mine = frames.filter(({ name }) => name === rule.when.name);
        const turnsOf = (some: readonly DeviceFrame[]) =>
          some.flatMap(({ id, timestamp }) => own.add({ device_id: id, at: Date.parse(timestamp) }));
        turnsOf(mine.filter(({ seq }) => seq <= cursor));
        const held = isFirst ? own.holding : [];
        const turns = [...held, ...turnsOf(mine.filter(({ seq }) => seq > cursor)), ...own.expire(now())];
        await see(round, rule, turns);
        // The broker may have lost what made it fire.
        const lost = round.open.ofRule(rule.id).filter(({ device_id }) => !own.holdsFor(device_id ?? ""));
        await see(
          round,
          rule,
          lost.map(({ device_id }) => ({ device_id: device_id ?? "", at: now(), holds: false })),
        );
      }
      const events = frames.at(-1)?.seq ?? stored;
      if (events !== stored) await changes.commit(round, new Map(), { ...round.progress, events });
    },
  };
}
