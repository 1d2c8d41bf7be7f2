import type { data } from "@devmesh/contracts/data";
import type { devices } from "@devmesh/contracts/devices";
import { maxTrialFirings, type RuleTrial } from "@devmesh/contracts/model/alert";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import { recordsOf } from "@devmesh/contracts/model/record-columns";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { Progress } from "../store/alert-store.ts";
import type { StoredRule } from "../store/rule-store.ts";
import { type AlertHistory, elapse, observe } from "./alert-states.ts";
import { endOfSight } from "./blind-times.ts";
import type { EventSource } from "./device-feed.ts";
import { countsOf, readFrames } from "./event-rules.ts";
import { nameOfRecord, type RuleOf, ruleBook } from "./rule-book.ts";
import { listOfRule, shadowSighting } from "./shadow-rules.ts";
import { readCreation } from "./silent-devices.ts";
import { documentOf, holdsFor, valueAt } from "./value-condition.ts";

const pageSize = 1_000;

/** A trial that takes longer returns what it has found, in milliseconds. */
const trialMs = 10_000;

export interface TrialOptions {
  readonly devices: Pick<Client<typeof devices>, "selectDevices" | "listDevices" | "readDevice">;
  readonly data: Pick<Client<typeof data>, "followRecords" | "queryRecords">;
  readonly source: Pick<EventSource, "replay">;
  /** Times in which the mesh could not see. */
  readonly readBlind: (signal: AbortSignal) => Promise<Progress["blind"]>;
  readonly clock: Clock;
}

/** What the evaluation would have done with the records of the last `overMs` milliseconds. */
export async function tryRule(
  options: TrialOptions,
  rule: StoredRule,
  overMs: number,
  call: CallContext,
): Promise<RuleTrial> {
  const endMs = options.clock.monotonicMs() + trialMs;
  const inTime = () => options.clock.monotonicMs() < endMs;
  const all = await select(options, rule.where, inTime, call);
  const trial = await tryCondition(options, { ...rule, enabled: true }, all.ids, { overMs, inTime }, call);
  const matching = new Set(trial.firings.map(({ device_id }) => device_id)).size;
  const firings = trial.firings.slice(0, maxTrialFirings);
  const cut = all.cut || trial.cut || firings.length < trial.firings.length;
  return { devices: all.ids.size, matching, firings, cut };
}

function tryCondition(
  options: TrialOptions,
  rule: StoredRule,
  ids: ReadonlySet<string>,
  within: TrialBounds,
  call: CallContext,
): Promise<FoundFirings> {
  const { when } = rule;
  switch (when.kind) {
    case "value":
      return tryValues(options, { ...rule, when }, ids, within, call);
    case "silent":
      return trySilent(options, { ...rule, when }, ids, within, call);
    case "offline":
      return tryOffline(options, { ...rule, when }, within.inTime, call);
    case "shadow":
      return tryShadow(options, { ...rule, when }, within.inTime, call);
    case "not_taken":
      return tryShadow(options, { ...rule, when }, within.inTime, call);
    case "event":
      return tryEvents(options, { ...rule, when }, ids, within, call);
  }
}

type FoundFirings = Pick<RuleTrial, "firings" | "cut">;

/** A firing whose end is not known yet. */
type OpenFiring = { -readonly [K in keyof RuleTrial["firings"][number]]: RuleTrial["firings"][number][K] };

async function select(
  { devices }: TrialOptions,
  where: StoredRule["where"],
  inTime: () => boolean,
  call: CallContext,
): Promise<{ readonly ids: Set<string>; readonly cut: boolean }> {
  const ids = new Set<string>();
  for (let cursor: string | null = null; inTime(); ) {
    const after: { after?: string } = cursor === null ? {} : { after: cursor };
    const page = await devices.selectDevices({ where, ...after, limit: pageSize }, call);
    for (const id of page.items) ids.add(id);
    if (page.next === null) return { ids, cut: false };
    cursor = page.next;
  }
  return { ids, cut: true };
}

async function tryOffline(
  options: TrialOptions,
  { where, when }: RuleOf<"offline">,
  inTime: () => boolean,
  call: CallContext,
): Promise<FoundFirings> {
  const longest = [when.longer_than, where.silent_for ?? "PT0S"].sort((a, b) => lengthOf(b) - lengthOf(a))[0];
  const { ids, cut } = await select(options, { ...where, silent_for: longest }, inTime, call);
  const from = new Date(options.clock.now().getTime() - lengthOf(when.longer_than)).toISOString();
  return { firings: [...ids].map((device_id) => ({ device_id, from, until: null, value: null })), cut };
}

/** The devices that meet it now. */
async function tryShadow(
  { devices, clock }: TrialOptions,
  rule: RuleOf<"shadow"> | RuleOf<"not_taken">,
  inTime: () => boolean,
  call: CallContext,
): Promise<FoundFirings> {
  const now = clock.now().getTime();
  const firings: RuleTrial["firings"] = [];
  for (let after: string | null = null; inTime() && firings.length <= maxTrialFirings; ) {
    const { items, next } = await listOfRule(devices, rule, after, call);
    for (const device of items) {
      const seen = shadowSighting(rule, device);
      if (seen === null || !seen.holds || seen.at + seen.holdMs > now) continue;
      const from = new Date(seen.at + seen.holdMs).toISOString();
      firings.push({ device_id: device.id, from, until: null, value: seen.value });
    }
    if (next === null) return { firings, cut: false };
    after = next;
  }
  return { firings, cut: true };
}

/** What it would have done with the events that the broker keeps. */
async function tryEvents(
  { source, clock }: TrialOptions,
  rule: RuleOf<"event">,
  ids: ReadonlySet<string>,
  { overMs }: TrialBounds,
  call: CallContext,
): Promise<FoundFirings> {
  const now = clock.now().getTime();
  const counts = countsOf(rule);
  const until = Number.POSITIVE_INFINITY;
  const frames = await readFrames(source, [rule.when.name], { until, signal: call.signal });
  const mine = frames
    .map(({ id, timestamp }) => ({ device_id: id, at: Date.parse(timestamp) }))
    .filter(({ device_id, at }) => ids.has(device_id) && at >= now - overMs);
  const firings: OpenFiring[] = [];
  const open = new Map<string, OpenFiring>();
  for (const { device_id, at, holds } of [...mine.flatMap((one) => counts.add(one)), ...counts.expire(now)]) {
    const time = new Date(at).toISOString();
    const firing = open.get(device_id);
    if (firing !== undefined) firing.until = time;
    open.delete(device_id);
    if (!holds) continue;
    const begun = { device_id, from: time, until: null, value: rule.when.count };
    firings.push(begun);
    open.set(device_id, begun);
  }
  return { firings, cut: false };
}

/** Devices whose creation is read at a time. */
const concurrency = 16;

async function trySilent(
  options: TrialOptions,
  rule: RuleOf<"silent">,
  ids: ReadonlySet<string>,
  { overMs, inTime }: TrialBounds,
  call: CallContext,
): Promise<FoundFirings> {
  const { devices, clock } = options;
  const now = clock.now().getTime();
  const longerMs = lengthOf(rule.when.longer_than);
  const start = now - overMs - longerMs;
  const blind = await options.readBlind(call.signal);
  const firings: { device_id: string; from: string; until: string | null; value: null }[] = [];
  /** Lists a time without records if it was long enough; `until` is the record that ended it. */
  function note(device_id: string, since: number, until: number | null): void {
    const firesAt = endOfSight(since, longerMs, blind);
    if (until === null ? firesAt > now : firesAt >= until) return;
    const ended = until === null ? null : new Date(until).toISOString();
    firings.push({ device_id, from: new Date(firesAt).toISOString(), until: ended, value: null });
  }

  const first = new Map<string, number>();
  const last = new Map<string, number>();
  const isEnough = () => firings.length > maxTrialFirings;
  const isCut = await readPast(options, rule, { since: start, inTime, isEnough }, call, (record) => {
    const { device_id } = record;
    if (!ids.has(device_id)) return;
    const at = Date.parse(record.timestamp);
    const before = last.get(device_id);
    if (before === undefined) first.set(device_id, at);
    else note(device_id, before, at);
    last.set(device_id, at);
  });
  if (isCut) return { firings, cut: true };
  for (const [id, at] of last) note(id, at, null);
  const unsure = [...ids].filter((id) => endOfSight(start, longerMs, blind) < (first.get(id) ?? now + 1));
  for (let begin = 0; begin < unsure.length; begin += concurrency) {
    if (!inTime() || isEnough()) return { firings, cut: true };
    await Promise.all(
      unsure.slice(begin, begin + concurrency).map(async (id) => {
        const createdAt = await readCreation(devices, id, call);
        if (createdAt !== null) note(id, Math.max(createdAt, start), first.get(id) ?? null);
      }),
    );
  }
  return { firings: firings.sort((a, b) => (a.from < b.from ? -1 : 1)), cut: false };
}

interface TrialBounds {
  readonly overMs: number;
  readonly inTime: () => boolean;
}

/** Gives all stored records of a rule since a time, in the order of storing; true if it ended early. */
async function readPast(
  { data }: TrialOptions,
  rule: RuleOf<"value"> | RuleOf<"silent">,
  until: { readonly since: number; readonly inTime: () => boolean; readonly isEnough: () => boolean },
  call: CallContext,
  take: (record: DataRecord) => void,
): Promise<boolean> {
  const book = ruleBook([rule]);
  const since = new Date(until.since).toISOString();
  const [first] = (await data.queryRecords({ principal: { kind: "master" }, since, limit: 1 }, call)).items;
  let isCut = false;
  for (let after = first === undefined ? null : String(first.id - 1); after !== null; ) {
    const page = await data.followRecords({ after, topics: [...book.topics] }, call);
    for (const record of recordsOf(page.records)) {
      const { silent, value } = book.ofRecord(nameOfRecord(record));
      if (record.timestamp >= since && silent.length + value.length > 0) take(record);
    }
    isCut = page.caught_up_at === null && (!until.inTime() || until.isEnough());
    after = page.caught_up_at === null && !isCut ? page.next : null;
  }
  return isCut;
}

async function tryValues(
  options: TrialOptions,
  rule: RuleOf<"value">,
  ids: ReadonlySet<string>,
  { overMs, inTime }: TrialBounds,
  call: CallContext,
): Promise<FoundFirings> {
  const { clock } = options;
  const histories = new Map<string, AlertHistory>();
  const firings: OpenFiring[] = [];
  const open = new Map<string, OpenFiring>();
  let made = 0;

  /** Lists what has fired or cleared from one history of a device to the next. */
  function note(device_id: string, before: AlertHistory, after: AlertHistory): void {
    histories.set(device_id, after);
    const ended = after.cleared !== null && after.cleared !== before.cleared ? after.cleared : null;
    const fired = after.open?.state === "firing" ? after.open : ended;
    if (fired !== null && before.open?.state !== "firing") {
      const from = new Date(fired.fired_at ?? fired.since).toISOString();
      const firing = { device_id, from, until: null, value: fired.value };
      firings.push(firing);
      open.set(device_id, firing);
    }
    const firing = open.get(device_id);
    if (ended === null || firing === undefined) return;
    firing.until = new Date(ended.cleared_at ?? ended.since).toISOString();
    open.delete(device_id);
  }

  const members = membersOf(rule.when.pointer);
  const since = clock.now().getTime() - overMs;
  const isEnough = () => firings.length > maxTrialFirings;
  const isCut = await readPast(options, rule, { since, inTime, isEnough }, call, (record) => {
    const { device_id, timestamp, id } = record;
    if (!ids.has(device_id)) return;
    const value = valueAt(documentOf(record), members);
    const before = histories.get(device_id) ?? { open: null, cleared: null };
    const holds = value === undefined ? null : holdsFor(rule.when, value, before.open !== null);
    if (value === undefined || holds === null || (!holds && before.open === null)) return;
    const seen = { holds, at: Date.parse(timestamp), record: id, value };
    note(
      device_id,
      before,
      observe(before, rule, device_id, seen, () => `trial-${++made}`),
    );
  });
  if (!isCut) {
    const at = clock.now().getTime();
    for (const [device, before] of histories) note(device, before, elapse(before, rule, at));
  }
  return { firings, cut: isCut };
}
