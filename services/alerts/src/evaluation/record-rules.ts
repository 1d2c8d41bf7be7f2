import type { data as contract } from "@devmesh/contracts/data";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import type { Json } from "@devmesh/contracts/model/json";
import { deviceOfRecord, emptyColumns, type RecordColumns } from "@devmesh/contracts/model/record-columns";
import { isReason } from "@devmesh/service-kit/errors";
import type { OpenCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { type AlertStore, pairOf } from "../store/alert-store.ts";
import type { StoredRule } from "../store/rule-store.ts";
import type { AlertChanges, HistoryChanges, Round } from "./alert-changes.ts";
import { type AlertHistory, elapse, observe } from "./alert-states.ts";
import { blindTimesAt } from "./blind-times.ts";
import { readHistories } from "./open-alerts.ts";
import { nameOfRecord, type RuleBook, type RuleOf } from "./rule-book.ts";
import type { SilentDevice, SilentDevices } from "./silent-devices.ts";
import { documentOf, holdsFor, valueAt } from "./value-condition.ts";

/** The most pages of records in one round, so that other conditions are looked at, too. */
const maxPages = 20;

/** How often the end of the records is noted while no rule needs them, in milliseconds. */
const noteEndEveryMs = 10_000;

/** Records that are older than this when they are read are a backlog, in milliseconds. */
const backlogMs = 10_000;

/** The most filters that `followRecords` takes. */
const maxTopics = 100;

export interface RecordRulesOptions {
  readonly alerts: AlertStore;
  readonly data: Pick<Client<typeof contract>, "followRecords">;
  readonly changes: AlertChanges;
  readonly silentDevices: SilentDevices;
  /** The rules as they are now. */
  readonly currentBook: () => Promise<RuleBook>;
  /** Those of these devices that a rule is for. */
  readonly select: (where: DeviceCondition, ids: readonly string[]) => Promise<Set<string>>;
  readonly leads: () => boolean;
  readonly newCall: () => OpenCallContext;
  readonly newId: () => string;
  readonly now: () => number;
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

/** Follows the records of `data`, and applies to each what rules on values and on silence make of it. */
export function createRecordRules({
  alerts,
  data,
  changes,
  silentDevices,
  currentBook,
  select,
  leads,
  newCall,
  newId,
  now,
  signal,
}: RecordRulesOptions) {
  /** The end of the records before the rules were read last: the first rule on records reads on from there. */
  let knownEnd: string | null = null;
  let nextEndMs = 0;

  /** Returns an end of the records that was noted before the rules were read last, and notes it again now and then. */
  async function noteEnd(): Promise<string | null> {
    const before = knownEnd;
    if (now() < nextEndMs) return before;
    nextEndMs = now() + noteEndEveryMs;
    using context = newCall();
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

  async function follow(round: Round, end: string | null): Promise<void> {
    if (round.book.topics.length === 0) {
      round.coveredAt = now();
      if (round.progress.cursor !== null)
        await changes.commit(round, new Map(), { ...round.progress, cursor: null });
      return;
    }
    let stored = round.progress.cursor;
    for (let pages = 0; pages < maxPages && leads(); pages++) {
      using context = newCall();
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
        await changes.commit(round, histories, progress);
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
    const blind = blindTimesAt(now(), progress);
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

  return {
    /** To be called before the rules of a round are read. Returns where a round without a cursor reads on. */
    noteEnd,
    /** Reads some pages of what was stored since the last round. */
    follow,
  };
}
