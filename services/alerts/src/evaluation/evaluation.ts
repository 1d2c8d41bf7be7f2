import type { data } from "@devmesh/contracts/data";
import type { devices } from "@devmesh/contracts/devices";
import { meshRuleId } from "@devmesh/contracts/model/alert";
import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { lengthOf } from "@devmesh/contracts/model/duration";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { selectAmong } from "../select-devices.ts";
import type { AlertStore, Progress, StoredAlert } from "../store/alert-store.ts";
import type { ReadOnChange } from "../store/read-on-change.ts";
import type { StoredRule } from "../store/rule-store.ts";
import { createAlertChanges, type Round, type Sighting } from "./alert-changes.ts";
import { cleared, elapse, type RuleParts } from "./alert-states.ts";
import { blindAfterMs, blindTimesAt, isBlindAt, reachBack } from "./blind-times.ts";
import { createDeviceFeed, type DeviceFrame, type EventSource } from "./device-feed.ts";
import { createEventRules } from "./event-rules.ts";
import { OpenAlerts } from "./open-alerts.ts";
import { createRecordRules } from "./record-rules.ts";
import { isOn, type RuleBook, type RuleOf, ruleBook } from "./rule-book.ts";
import { createShadowRules } from "./shadow-rules.ts";
import { createSilentDevices } from "./silent-devices.ts";

/** Devices of a page. */
const pageSize = 1_000;

/** How long `devices` and `data` may take for one page, in milliseconds. */
const callMs = 5_000;

/** How often devices without a connection or records are looked for, and whether a device is still of its rule. */
const offlineEveryMs = 5_000;
const silentEveryMs = 2_000;
const membersEveryMs = 10_000;
/** Looks at the latter take at most one part in so many of the time. */
const membersParts = 20;

/** How often the progress is stored while nothing happens, in milliseconds. */
const noteEveryMs = 10_000;

/** So long after the broker came back devices may still be connecting, in milliseconds. */
export const graceMs = 90_000;

/** Deleted devices that wait for a round; with more, the others are found among the members. */
const maxDeleted = 10_000;

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
  const { readRules, alerts, devices, data, source, connectedSince, leads, clock, log, signal } = options;
  /** Read from the store at the beginning, and after a failure. */
  let known: { readonly open: OpenAlerts; readonly progress: Progress } | null = null;
  let arranged: { readonly rules: readonly StoredRule[]; readonly book: RuleBook } = {
    rules: [],
    book: ruleBook([]),
  };
  /** From when on devices have had time to connect after an interruption. */
  let watchFrom = 0;
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
  const recordRules = createRecordRules({
    ...options,
    ...{ changes, silentDevices, currentBook, select, newCall: call, now },
  });
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

  async function readKnown(): Promise<NonNullable<typeof known>> {
    const open = await OpenAlerts.read(alerts, signal);
    const stored = await alerts.readProgress(signal);
    if (stored !== null && isBlindAt(now(), stored)) watchFrom = now() + graceMs;
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
    if (isBlindAt(now(), round.progress)) await changes.see(round, meshRule, [seen], { until: now() });
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
        const end = known.progress.cursor === null ? await recordRules.noteEnd() : null;
        const round: Round = { ...known, book: await currentBook(), coveredAt: null };
        feed.follow(framesOf(round.book));
        await noteBlindness(round);
        await endOrphans(round);
        silentDevices.follow(round.book);
        await recordRules.follow(round, end);
        if (round.book.silent.length > 0) await silentDevices.load();
        await eventRules.evaluate(round);
        await shadowRules.evaluate(round);
        await firePending(round);
        if (isWatching(round)) {
          const { watched_at } = round.progress;
          const wasBlind = isBlindAt(now(), round.progress);
          const watched = {
            ...round.progress,
            watched_at: now(),
            blind: blindTimesAt(now(), round.progress),
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
            const begunMs = clock.monotonicMs();
            await checkMembers(round);
            const tookMs = clock.monotonicMs() - begunMs;
            nextMembersMs = now() + Math.max(membersEveryMs, tookMs * membersParts);
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
