import type { data } from "@devmesh/contracts/data";
import type { devices } from "@devmesh/contracts/devices";
import { meshRuleId } from "@devmesh/contracts/model/alert";
import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { lengthOf } from "@devmesh/contracts/model/duration";
import type { Json } from "@devmesh/contracts/model/json";
import { deviceOfRecord, emptyColumns, type RecordColumns } from "@devmesh/contracts/model/record-columns";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { selectAmong } from "../select-devices.ts";
import { type AlertStore, type Progress, pairOf, type StoredAlert } from "../store/alert-store.ts";
import type { ReadOnChange } from "../store/read-on-change.ts";
import type { StoredRule } from "../store/rule-store.ts";
import { createAlertChanges, type HistoryChanges, type Round, type Sighting } from "./alert-changes.ts";
import { type AlertHistory, cleared, elapse, observe, type RuleParts } from "./alert-states.ts";
import { reachBack, withBlindTime } from "./blind-times.ts";
import { createDeviceFeed, type DeviceFrame, type EventSource } from "./device-feed.ts";
import { createEventRules } from "./event-rules.ts";
import { OpenAlerts, readHistories } from "./open-alerts.ts";
import { isOn, nameOfRecord, type RuleBook, type RuleOf, ruleBook } from "./rule-book.ts";
import { createShadowRules } from "./shadow-rules.ts";
import { createSilentDevices, type SilentDevice } from "./silent-devices.ts";
import { documentOf, holdsFor, valueAt } from "./value-condition.ts";

/** Devices of a page. */
const pageSize = 1_000;

/** The most pages of records in one round, so that other conditions are looked at, too. */
const maxPages = 20;

/** How long `devices` and `data` may take for one page, in milliseconds. */
const callMs = 5_000;

/** How often devices without a connection or records are looked for, and whether a device is still of its rule. */
const offlineEveryMs = 5_000;
const silentEveryMs = 2_000;
const membersEveryMs = 60_000;

/** How often the end of the records is noted while no rule needs them, in milliseconds. */
const noteEndEveryMs = 10_000;

/** How often the progress is stored while nothing happens, in milliseconds. */
const noteEveryMs = 10_000;

/** A longer time without a round that succeeded is one in which the mesh could not see, in milliseconds. */
const blindAfterMs = 15_000;

/** Records that are older than this when they are read are a backlog, in milliseconds. */
const backlogMs = 10_000;

/** So long after the broker came back devices may still be connecting, in milliseconds. */
export const graceMs = 90_000;

/** Deleted devices that wait for a round; with more, the others are found among the members. */
const maxDeleted = 10_000;

/** The most filters that `followRecords` takes. */
const maxTopics = 100;

export interface EvaluationOptions {
  readonly readRules: ReadOnChange<readonly StoredRule[]>;
  readonly alerts: AlertStore;
  readonly devices: Pick<Client<typeof devices>, "selectDevices" | "listDevices" | "readDevice">;
  readonly data: Pick<Client<typeof data>, "followRecords" | "listLatest">;
  readonly source: EventSource;
  /** Since when the broker is connected; Unix milliseconds, null while it is not. */
  readonly connectedSince: () => number | null;
  /** Is given each alert that fired or cleared, once it is stored. */
  readonly onChanged: (alert: StoredAlert) => void;
  readonly leads: () => boolean;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** What a record says to a rule. */
interface SeenRecord {
  readonly id: number;
  /** When the broker took it; Unix milliseconds. */
  readonly at: number;
  readonly rule: RuleOf<"value"> | RuleOf<"silent">;
  readonly rule_id: string;
  readonly device_id: string;
  readonly value: Json;
  /** The silence that it ended. */
  readonly silence: SilentDevice | null;
}

/** {@link holdsFor} of a rule on records: one that comes ends a silence. */
function holdsNow(
  when: (RuleOf<"value"> | RuleOf<"silent">)["when"],
  value: Json,
  holds: boolean,
): boolean | null {
  return when.kind === "silent" ? false : holdsFor(when, value, holds);
}

/** How long the condition of a rule must hold, in milliseconds. */
function holdMsOf(rule: StoredRule): number {
  return isOn(rule, "not_taken") ? lengthOf(rule.when.longer_than) : rule.forMs;
}

/** The built-in rule: the mesh could not see its devices. */
const meshRule: RuleParts = {
  id: meshRuleId,
  name: "The mesh could not see its devices",
  severity: "warning",
  epoch: 1,
  forMs: blindAfterMs,
};

const ofMesh = { rule_id: meshRuleId, device_id: null };

const idsOf = (alerts: readonly StoredAlert[]) =>
  alerts.flatMap(({ device_id }) => (device_id === null ? [] : [device_id]));

/** Names of the frames that rules need; without a rule none. */
function framesOf({ byId, event, shadow }: RuleBook): string[] {
  if (byId.size === 0) return [];
  return [
    "deleted",
    ...(shadow.length > 0 ? ["created", "updated"] : []),
    ...event.map(({ when }) => when.name),
  ];
}

/** Decides which rules hold for which devices, in the replica that leads. */
export function createEvaluation(options: EvaluationOptions) {
  const { readRules, alerts, devices, data, source, connectedSince, leads, newId, clock, log, signal } =
    options;
  /** Read from the store at the beginning, and after a failure. */
  let known: { readonly open: OpenAlerts; readonly progress: Progress } | null = null;
  let arranged: { readonly rules: readonly StoredRule[]; readonly book: RuleBook } = {
    rules: [],
    book: ruleBook([]),
  };
  /** From when on devices have had time to connect after an interruption. */
  let watchFrom = 0;
  /** The end of the records before the rules were read last: the first rule on records reads on from there. */
  let knownEnd: string | null = null;
  let nextEndMs = 0;
  let nextOfflineMs = 0;
  let nextSilentMs = 0;
  const silentDevices = createSilentDevices({ devices, data, clock, signal });
  let nextMembersMs = 0;
  const now = () => clock.now().getTime();
  const call = () => createCallContext({ timeoutMs: callMs, signal, clock });
  const select = (where: DeviceCondition, ids: readonly string[]) => selectAmong(devices, where, ids, call);
  const changes = createAlertChanges(options);
  const { commit, changeOpen } = changes;
  const onFailure = (err: unknown) => log.warn({ err }, "events of devices are read again");
  const eventRules = createEventRules({ source, changes, select, now, onFailure, signal });
  const shadowRules = createShadowRules({ devices, changes, select, newCall: call, now });
  /** Devices that were deleted since the last round. */
  const deleted = new Set<string>();
  const feed = createDeviceFeed({ source, take, onBegin: ({ after }) => begin(after), onFailure, signal });

  function take(frame: DeviceFrame): void {
    if (frame.name === "deleted" && deleted.size < maxDeleted) deleted.add(frame.id);
    if (frame.name === "created" || frame.name === "updated")
      shadowRules.take(frame.data as unknown as Device);
    eventRules.take(frame);
  }

  function begin(after: number): void {
    eventRules.began(after);
    shadowRules.checkAll();
    nextMembersMs = 0;
  }

  /** Whether the mesh has not seen for a while. */
  const isBlind = ({ watched_at }: Progress) => now() - watched_at > blindAfterMs;

  async function readKnown(): Promise<NonNullable<typeof known>> {
    const open = await OpenAlerts.read(alerts, signal);
    const stored = await alerts.readProgress(signal);
    if (stored !== null && now() - stored.watched_at > blindAfterMs) watchFrom = now() + graceMs;
    return {
      open,
      progress: stored ?? { cursor: null, events: null, watched_at: now(), blind: [], revision: 0 },
    };
  }

  async function currentBook(): Promise<RuleBook> {
    const rules = await readRules(signal);
    if (rules !== arranged.rules) arranged = { rules, book: ruleBook(rules) };
    return arranged.book;
  }

  /** Ends alerts of rules that are gone, disabled or changed. */
  async function endOrphans(round: Round): Promise<void> {
    const whyOf = ({ rule_id, epoch }: StoredAlert) => {
      if (rule_id === meshRuleId) return null;
      const rule = round.book.byId.get(rule_id);
      if (rule === undefined) return "rule_deleted";
      if (!rule.enabled) return "rule_disabled";
      return rule.epoch === epoch ? null : "rule_changed";
    };
    const ended = round.open.all.filter((alert) => whyOf(alert) !== null);
    await changeOpen(round, ended, (history) => {
      const why = history.open === null ? null : whyOf(history.open);
      return why === null ? history : cleared(history, why, now());
    });
    const gone = new Set(deleted);
    deleted.clear();
    const ofGone = round.open.all.filter(({ device_id }) => device_id !== null && gone.has(device_id));
    await changeOpen(round, ofGone, (history) => cleared(history, "device_deleted", now()));
  }

  /** Returns an end of the records that was noted before the rules were read last, and notes it again now and then. */
  async function noteEnd(): Promise<string | null> {
    const before = knownEnd;
    if (now() < nextEndMs) return before;
    nextEndMs = now() + noteEndEveryMs;
    using context = call();
    // `data` may be away; then the former end stays.
    const read = await data.followRecords({ after: null }, context).catch(() => null);
    knownEnd = read?.next ?? before;
    return before ?? knownEnd;
  }

  /** Reads the rules again; returns whether they want records of other topics now. */
  async function hasNewTopics(round: Round): Promise<boolean> {
    const book = await currentBook();
    if (book === round.book) return false;
    const before = round.book.topics.join("\n");
    round.book = book;
    silentDevices.follow(round.book);
    return round.book.topics.join("\n") !== before;
  }

  async function followRecords(round: Round, end: string | null): Promise<void> {
    if (round.book.topics.length === 0) {
      round.coveredAt = now();
      if (round.progress.cursor !== null) await commit(round, new Map(), { ...round.progress, cursor: null });
      return;
    }
    let stored = round.progress.cursor;
    for (let pages = 0; pages < maxPages && leads(); pages++) {
      using context = call();
      const { topics } = round.book;
      const after = round.progress.cursor ?? end;
      const asked = { after, ...(topics.length <= maxTopics && { topics: [...topics] }) };
      const { records, next, caught_up_at } = await data
        .followRecords(asked, context)
        .catch((error: unknown) => {
          if (!isReason(error, "cursor_invalid")) throw error;
          // The store of `data` was restored: what follows is read.
          return { records: emptyColumns(), next: null, caught_up_at: null };
        });
      // The page lacks records for a rule that was created meanwhile.
      if (next !== after && (await hasNewTopics(round))) continue;
      const lag = now() - records.times.reduce((least, time) => Math.min(least, time), now());
      const histories = await observeRecords(round, records);
      const isLast = caught_up_at !== null || pages === maxPages - 1;
      const progress = { ...round.progress, cursor: next };
      // Pages that change nothing are read again after a death.
      if (histories.size > 0 || (isLast && next !== stored)) {
        await commit(round, histories, progress);
        stored = next;
      } else round.progress = progress;
      round.coveredAt = caught_up_at === null || lag > backlogMs ? null : Date.parse(caught_up_at);
      if (caught_up_at !== null) return;
    }
  }

  async function observeRecords(
    { book, open, progress }: Round,
    records: RecordColumns,
  ): Promise<HistoryChanges> {
    const { watched_at } = progress;
    const blind = isBlind(progress) ? withBlindTime(progress.blind, [watched_at, now()]) : progress.blind;
    /** Devices whose alert may begin in this page, by rule, and of all rules. */
    const begins = new Map<SeenRecord["rule"], Set<string>>();
    const beginning = new Set<string>();
    const seen: SeenRecord[] = [];
    const { ids, times, topics, messages } = records;
    const encoded = new Set(records.base64);

    /** Keeps what a record says to a rule, if it may change an alert. */
    function look(rule: SeenRecord["rule"], of: Omit<SeenRecord, "rule" | "rule_id">): void {
      const { device_id } = of;
      const one = { ...of, rule, rule_id: rule.id };
      if (!open.has(one) && begins.get(rule)?.has(device_id) !== true) {
        // Of most records a rule needs to know no more.
        if (of.silence === null && holdsNow(rule.when, of.value, false) !== true) return;
        begins.set(rule, (begins.get(rule) ?? new Set()).add(device_id));
        beginning.add(device_id);
      }
      seen.push(one);
    }

    for (const [at, topic] of topics.entries()) {
      const name = nameOfRecord({ topic });
      const { silent, value: onValues } = book.ofRecord(name);
      if (silent.length === 0 && onValues.length === 0) continue;
      const device_id = deviceOfRecord(topic);
      const record = { device_id, id: ids[at] ?? 0, at: times[at] ?? 0 };
      for (const rule of silent) {
        const silence = silentDevices.endedBy(rule, record, blind);
        look(rule, { ...record, value: null, silence });
      }
      if (silent.length > 0) silentDevices.note({ ...record, name });
      if (onValues.length === 0 || encoded.has(record.id)) continue;
      const document = documentOf({ message: messages[at] ?? "" });
      for (const { members, quiet, rules: ofValue } of onValues) {
        const value = valueAt(document, members);
        if (value === undefined) continue;
        const isQuiet = typeof value === "number" && quiet !== null && quiet[0] < value && value < quiet[1];
        if (isQuiet && !open.hasDevice(device_id) && !beginning.has(device_id)) continue;
        for (const rule of ofValue) look(rule, { ...record, value, silence: null });
      }
    }
    const ofRule = new Map<string, Set<string>>();
    for (const [rule, ids] of begins) ofRule.set(rule.id, await select(rule.where, [...ids]));
    const wanted = seen.filter((one) => open.has(one) || ofRule.get(one.rule_id)?.has(one.device_id));
    const pairs = [...new Map(wanted.map((one) => [pairOf(one), one])).values()];
    const stored = await readHistories(alerts, pairs, signal);
    const histories = new Map([...stored].map(([key, before]) => [key, { before, after: before }] as const));
    for (const { id, at, device_id, rule, value, silence } of wanted) {
      const key = pairOf({ rule_id: rule.id, device_id });
      const known = histories.get(key);
      if (known === undefined) continue;
      const history =
        silence === null ? known : { ...known, after: afterSilence(known.after, rule, silence) };
      const holds = holdsNow(rule.when, value, history.after.open !== null);
      if (holds === null) continue;
      const after = observe(history.after, rule, device_id, { holds, at, record: id, value }, newId);
      histories.set(key, { before: history.before, after });
    }
    const pairByKey = new Map(pairs.map((pair) => [pairOf(pair), pair]));
    return new Map(
      [...histories].flatMap(([key, history]) => {
        const pair = pairByKey.get(key);
        const isChanged = history.before !== history.after;
        return pair === undefined || !isChanged ? [] : [[key, { pair, ...history }] as const];
      }),
    );
  }

  /** Fires for a silence between two looks for silent devices. */
  function afterSilence(history: AlertHistory, rule: StoredRule, silence: SilentDevice): AlertHistory {
    if (history.open !== null || (history.cleared?.cleared_at ?? 0) > silence.from) return history;
    const parts = { ...rule, forMs: silence.firesAt - silence.from };
    const seen = { holds: true, at: silence.from, record: 0, value: null };
    return elapse(observe(history, parts, silence.device_id, seen, newId), parts, silence.firesAt);
  }

  /** Fires what has held for long enough, as far as records were read. */
  async function firePending(round: Round): Promise<void> {
    const at = round.coveredAt;
    if (at === null) return;
    const due = round.open.all.filter((one) => {
      const rule = round.book.byId.get(one.rule_id);
      return rule !== undefined && one.state === "pending" && one.since + holdMsOf(rule) <= at;
    });
    await changeOpen(round, due, (history, rule) =>
      rule === undefined ? history : elapse(history, { ...rule, forMs: holdMsOf(rule) }, at),
    );
  }

  async function lookForOffline(round: Round, rule: RuleOf<"offline">): Promise<void> {
    const wantedMs = lengthOf(rule.when.longer_than);
    const at = now();
    const reachMs = reachBack(wantedMs, round.progress.blind, at);
    const given = rule.where.silent_for === undefined ? 0 : lengthOf(rule.where.silent_for);
    const seen = { holds: true, at: at - reachMs, value: null, holdMs: reachMs };
    const silent_for = `PT${Math.ceil(Math.max(reachMs, given) / 1_000)}S`;
    for (let cursor: string | null = null; leads(); ) {
      using context = call();
      const after: { after?: string } = cursor === null ? {} : { after: cursor };
      const where = { ...rule.where, silent_for };
      const page = await devices.selectDevices({ where, ...after, limit: pageSize }, context);
      const sightings = page.items
        .filter((device_id) => !round.open.has({ rule_id: rule.id, device_id }))
        .map((device_id): Sighting => ({ ...seen, device_id }));
      await changes.see(round, rule, sightings, { until: at });
      if (page.next === null) break;
      cursor = page.next;
    }
    const open = round.open.ofRule(rule.id);
    const still = await select({ silent_for: rule.when.longer_than }, idsOf(open));
    const ended = open.filter(({ device_id }) => !still.has(device_id ?? ""));
    await changeOpen(round, ended, (history) => cleared(history, "condition", at));
  }

  /** Fires for devices that sent nothing, up to the time that all records were read for. */
  async function lookForSilent(round: Round, rule: RuleOf<"silent">, at: number): Promise<void> {
    const found = await silentDevices.find(rule, at, round.progress.blind, (device_id) =>
      round.open.has({ rule_id: rule.id, device_id }),
    );
    const sightings = found.map(
      ({ device_id, from, firesAt }): Sighting => ({
        device_id,
        holds: true,
        at: from,
        value: null,
        holdMs: firesAt - from,
      }),
    );
    await changes.see(round, rule, sightings, { until: at });
  }

  /** Ends alerts of devices that are gone, or are not of the rule any more. */
  async function checkMembers(round: Round): Promise<void> {
    for (const [ruleId, open] of Map.groupBy(round.open.all, ({ rule_id }) => rule_id)) {
      const rule = round.book.byId.get(ruleId);
      if (rule === undefined) continue;
      const found = await select(rule.where, idsOf(open));
      const ended = open.filter(({ device_id }) => !found.has(device_id ?? ""));
      const existing = await select({}, idsOf(ended));
      await changeOpen(round, ended, (history) => {
        const why = existing.has(history.open?.device_id ?? "") ? "not_matching" : "device_deleted";
        return cleared(history, why, now());
      });
    }
  }

  /** Fires for the mesh once it has not seen for a while. First of all: what follows may fail for the same reason. */
  async function noteBlindness(round: Round): Promise<void> {
    const { watched_at } = round.progress;
    if (round.open.has(ofMesh)) return;
    const seen = { ...ofMesh, holds: true, at: watched_at, value: null, holdMs: blindAfterMs };
    if (isBlind(round.progress)) await changes.see(round, meshRule, [seen], { until: now() });
  }

  /** Whether the mesh can see now; if not, this time counts for nobody who is offline. */
  function isWatching({ coveredAt }: Round): boolean {
    const since = connectedSince();
    return coveredAt !== null && since !== null && now() >= Math.max(since, watchFrom);
  }

  return {
    /** One round. @throws StaleChange when another replica wrote; the next round reads all again */
    async round(): Promise<void> {
      if (!leads()) {
        known = null;
        silentDevices.clear();
        feed.follow([]);
        return;
      }
      try {
        known ??= await readKnown();
        const end = known.progress.cursor === null ? await noteEnd() : null;
        const round: Round = { ...known, book: await currentBook(), coveredAt: null };
        feed.follow(framesOf(round.book));
        await noteBlindness(round);
        await endOrphans(round);
        silentDevices.follow(round.book);
        await followRecords(round, end);
        if (round.book.silent.length > 0) await silentDevices.load();
        await eventRules.evaluate(round);
        await shadowRules.evaluate(round);
        await firePending(round);
        if (isWatching(round)) {
          const { watched_at, blind } = round.progress;
          const wasBlind = isBlind(round.progress);
          const watched = {
            ...round.progress,
            watched_at: now(),
            blind: wasBlind ? withBlindTime(blind, [watched_at, now()]) : blind,
          };
          if (wasBlind) await commit(round, new Map(), watched);
          await changeOpen(round, round.open.ofRule(meshRuleId), (history) =>
            cleared(history, "condition", now()),
          );
          if (now() >= nextOfflineMs) {
            for (const rule of round.book.offline) await lookForOffline(round, rule);
            nextOfflineMs = now() + offlineEveryMs;
          }
          if (now() >= nextSilentMs && round.coveredAt !== null) {
            for (const rule of round.book.silent) await lookForSilent(round, rule, round.coveredAt);
            nextSilentMs = now() + silentEveryMs;
          }
          if (now() >= nextMembersMs) {
            await checkMembers(round);
            nextMembersMs = now() + membersEveryMs;
          }
          // Last: while `devices` cannot be asked, the mesh does not see.
          if (!wasBlind && now() - watched_at > noteEveryMs) await commit(round, new Map(), watched);
        }
        known = { open: round.open, progress: round.progress };
      } catch (error) {
        known = null;
        eventRules.restart();
        shadowRules.checkAll();
        throw error;
      }
    },
    /** Alerts that pend or fire; 0 where this replica does not lead. */
    get open(): number {
      return known?.open.all.length ?? 0;
    },
  };
}
