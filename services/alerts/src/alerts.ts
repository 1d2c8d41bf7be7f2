import type { alerts } from "@devmesh/contracts/alerts";
import type { AlertSummary } from "@devmesh/contracts/model/alert";
import { lengthOf } from "@devmesh/contracts/model/duration";
import {
  alertBounds,
  type ChannelInput,
  type ChannelPatch,
  channelTests,
  checkRule,
  type RuleInput,
} from "@devmesh/contracts/model/rule";
import { checkSilence } from "@devmesh/contracts/model/silence";
import { type Violation, ViolationList } from "@devmesh/contracts/model/violation";
import { visibleText } from "@devmesh/contracts/model/visible-text";
import type { webhooks } from "@devmesh/contracts/webhooks";
import { definedMembers } from "@devmesh/service-kit/defined-members";
import { isReason } from "@devmesh/service-kit/errors";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client, Implementation } from "@devmesh/service-kit/rpc/implementation";
import { pageById } from "@devmesh/service-kit/rpc/page";
import { describeAlert, describeChannel, describeRule, describeSilence } from "./describe.ts";
import { type TrialOptions, tryRule } from "./evaluation/trial.ts";
import type { SendToChannel } from "./notifying/channel-sender.ts";
import { type FiringCount, StaleChange, type StoredAlert } from "./store/alert-store.ts";
import type { AlertsStore } from "./store/alerts-store.ts";
import type { StoredRule } from "./store/rule-store.ts";

/** The time in which tests of channels are counted, in milliseconds. */
export const testWindowMs = 3_600_000;

/** Items of one page, unless the caller wants fewer. */
const pageSize = 500;

export interface AlertsOptions extends Omit<TrialOptions, "readBlind"> {
  readonly store: Pick<AlertsStore, "rules" | "alerts" | "testSlots">;
  readonly webhooks: Pick<Client<typeof webhooks>, "readWebhook">;
  readonly send: SendToChannel;
  /** Is given each alert that was acknowledged or noted on. */
  readonly onChanged: (alert: StoredAlert, call: CallContext) => void;
  readonly newId: () => string;
}

/** The use cases of the contract. The replica that evaluates acts on changed rules. */
export function createAlerts(options: AlertsOptions): Implementation<typeof alerts> {
  const { store, devices, data, source, webhooks, send, onChanged, newId, clock } = options;
  const { rules, testSlots } = store;
  const readBlind = async (signal: AbortSignal) => (await store.alerts.readProgress(signal))?.blind ?? [];
  const trial = { devices, data, source, clock, readBlind };
  /** A trial reads many records: a replica makes one at a time. */
  let isTrying = false;
  const now = () => clock.now().getTime();
  const listing = (refuse: () => never) => ({ most: pageSize, refuse });

  async function violationsOf(rule: RuleInput, signal: AbortSignal): Promise<Violation[]> {
    const violations = new ViolationList();
    checkRule(rule, violations);
    const channels = await rules.listChannels({ limit: alertBounds.channels }, signal);
    const known = new Set(channels.map(({ id }) => id));
    for (const [at, id] of rule.notify.entries())
      if (!known.has(id)) violations.add(`/notify/${at}`, "is no channel");
    return violations.list;
  }

  return {
    listRules: (page, ctx) =>
      pageById(page, {
        ...listing(() => ctx.fail("cursor_invalid")),
        read: (asked) => rules.listRules(asked, ctx.signal),
        describe: describeRule,
      }),

    async createRule({ rule }, ctx) {
      const violations = await violationsOf(rule, ctx.signal);
      if (violations.length > 0) return ctx.fail("rule_invalid", violations);
      const stored = {
        ...rule,
        id: newId(),
        forMs: lengthOf(rule.for),
        epoch: 1,
        created_at: now(),
        revision: 1,
      };
      if (!(await rules.insertRule(stored, alertBounds.rules, ctx.signal))) return ctx.fail("too_many_rules");
      return describeRule(stored);
    },

    async tryRule({ rule, over_ms }, ctx) {
      const violations = await violationsOf(rule, ctx.signal);
      if (violations.length > 0) return ctx.fail("rule_invalid", violations);
      if (isTrying) return ctx.fail("too_many_trials");
      isTrying = true;
      try {
        const stored = {
          ...rule,
          id: "",
          forMs: lengthOf(rule.for),
          epoch: 1,
          created_at: now(),
          revision: 1,
        };
        return await tryRule(trial, stored, over_ms, ctx);
      } finally {
        isTrying = false;
      }
    },

    async readRule({ id }, ctx) {
      return describeRule((await rules.findRule(id, ctx.signal)) ?? ctx.fail("rule_not_found"));
    },

    async changeRule({ id, patch }, ctx) {
      for (;;) {
        const before = (await rules.findRule(id, ctx.signal)) ?? ctx.fail("rule_not_found");
        const changed: StoredRule = { ...before, ...definedMembers(patch) };
        const after: StoredRule = {
          ...changed,
          forMs: lengthOf(changed.for),
          epoch: before.epoch + (holdsForOther(before, changed) ? 1 : 0),
          revision: before.revision + 1,
        };
        const violations = await violationsOf({ ...after, notify: [...after.notify] }, ctx.signal);
        if (violations.length > 0) return ctx.fail("rule_invalid", violations);
        if (await rules.changeRule(after, ctx.signal)) return describeRule(after);
      }
    },

    async deleteRule({ id }, ctx) {
      if (!(await rules.removeRule(id, ctx.signal))) return ctx.fail("rule_not_found");
      return {};
    },

    listAlerts: ({ after, limit, ...conditions }, ctx) =>
      pageById(
        { after, limit },
        {
          ...listing(() => ctx.fail("cursor_invalid")),
          read: (asked) => store.alerts.listAlerts({ ...conditions, ...asked }, ctx.signal),
          describe: describeAlert,
        },
      ),

    countAlerts: async (selection, ctx) => ({ count: await store.alerts.countAlerts(selection, ctx.signal) }),

    async summarizeAlerts(_, ctx) {
      const counts = await store.alerts.countFiring(ctx.signal);
      const all = await rules.listRules({ limit: alertBounds.rules }, ctx.signal);
      return summaryOf(counts, new Map(all.map(({ id, name }) => [id, name])));
    },

    countSettings: (_, ctx) => rules.count(ctx.signal),

    async readAlert({ id }, ctx) {
      return describeAlert((await fired(id, ctx.signal)) ?? ctx.fail("alert_not_found"));
    },

    async changeAlert({ id, patch, key_id }, ctx) {
      for (;;) {
        const before = (await fired(id, ctx.signal)) ?? ctx.fail("alert_not_found");
        const { acknowledged, note = before.note } = patch;
        const isNew = acknowledged === true && before.acknowledged_at === null;
        const after = {
          ...before,
          note,
          ...(isNew && { acknowledged_at: now(), acknowledged_by: key_id }),
        };
        try {
          await store.alerts.commit({ save: [after], remove: [] }, ctx.signal);
        } catch (error) {
          if (error instanceof StaleChange) continue;
          throw error;
        }
        onChanged(after, ctx);
        return describeAlert(after);
      }
    },

    listChannels: (page, ctx) =>
      pageById(page, {
        ...listing(() => ctx.fail("cursor_invalid")),
        read: (asked) => rules.listChannels(asked, ctx.signal),
        describe: describeChannel,
      }),

    async createChannel({ channel }, ctx) {
      const violations = await channelViolations(channel, ctx);
      if (violations.length > 0) return ctx.fail("channel_invalid", violations);
      const stored = { ...channel, id: newId(), created_at: now(), sent_at: 0, storms: {}, revision: 1 };
      if (!(await rules.insertChannel(stored, alertBounds.channels, ctx.signal)))
        return ctx.fail("too_many_channels");
      return describeChannel(stored);
    },

    async changeChannel({ id, patch }, ctx) {
      for (;;) {
        const before = (await rules.findChannel(id, ctx.signal)) ?? ctx.fail("channel_not_found");
        const violations = foreignMembers(before, patch);
        const after = { ...before, ...definedMembers(patch), revision: before.revision + 1 };
        if (violations.length === 0) violations.push(...(await channelViolations(after, ctx)));
        if (violations.length > 0) return ctx.fail("channel_invalid", violations);
        if (await rules.changeChannel(after, ctx.signal)) return describeChannel(after);
      }
    },

    async testChannel({ id }, ctx) {
      const channel = (await rules.findChannel(id, ctx.signal)) ?? ctx.fail("channel_not_found");
      if (!(await takeTest(channel, ctx.signal))) return ctx.fail("too_many_tests");
      const text = `A test of the channel "${visibleText(channel.name)}": alerts are sent here.`;
      const message = {
        id: `test-${newId()}`,
        mail: { alerts: [], more: 0, storms: [], test: channel.name },
        event: { type: "devmesh.test", data: { channel_id: id, text } },
        text,
      };
      return (await send(channel, message, ctx.signal)) ? {} : ctx.fail("channel_target_gone");
    },

    async deleteChannel({ id }, ctx) {
      const users = await rules.listRules({ limit: alertBounds.rules }, ctx.signal);
      if (users.some(({ notify }) => notify.includes(id))) return ctx.fail("channel_in_use");
      if (!(await rules.removeChannel(id, ctx.signal))) return ctx.fail("channel_not_found");
      return {};
    },

    listSilences: (page, ctx) =>
      pageById(page, {
        ...listing(() => ctx.fail("cursor_invalid")),
        read: (asked) => rules.listSilences(asked, ctx.signal),
        describe: describeSilence,
      }),

    async createSilence({ silence }, ctx) {
      const violations = new ViolationList();
      checkSilence(silence, now(), violations);
      if (violations.list.length > 0) return ctx.fail("silence_invalid", violations.list);
      const { where, rule_ids = null, from, until, note } = silence;
      const begin = from === undefined ? now() : Date.parse(from);
      const times = { from: begin, until: Date.parse(until), created_at: now() };
      const stored = { id: newId(), where, rule_ids, note, ...times };
      if (!(await rules.insertSilence(stored, alertBounds.silences, ctx.signal)))
        return ctx.fail("too_many_silences");
      return describeSilence(stored);
    },

    async deleteSilence({ id }, ctx) {
      if (!(await rules.removeSilence(id, ctx.signal))) return ctx.fail("silence_not_found");
      return {};
    },
  };

  /** What a schema cannot know: whether the webhook exists. */
  async function channelViolations(channel: ChannelInput, call: CallContext): Promise<Violation[]> {
    if (channel.kind !== "webhook") return [];
    try {
      await webhooks.readWebhook({ id: channel.webhook_id }, call);
      return [];
    } catch (error) {
      if (!isReason(error, "webhook_not_found")) throw error;
      return [{ pointer: "/webhook_id", detail: "is no webhook" }];
    }
  }

  /** Takes a test of each address or webhook, and of the total; none if one of them has no more. */
  async function takeTest(channel: ChannelInput, signal: AbortSignal): Promise<boolean> {
    const targets = channel.kind === "mail" ? channel.to : [channel.webhook_id];
    const at = now();
    const windows = [...new Set(targets.map((target) => target.toLowerCase()))].map(
      (name): [string, number] => [`target ${name}`, channelTests.perTarget],
    );
    const taken: string[] = [];
    for (const [name, most] of [...windows, ["total", channelTests.total] as const]) {
      if (await testSlots.take(name, most, at - testWindowMs, at, signal)) {
        taken.push(name);
        continue;
      }
      for (const one of taken) await testSlots.giveBack(one, at, signal);
      return false;
    }
    return true;
  }

  async function fired(id: string, signal: AbortSignal): Promise<StoredAlert | null> {
    const found = await store.alerts.findAlert(id, signal);
    return found?.state === "pending" ? null : found;
  }
}

/** Counts by rule and severity as a summary, with the names that rules have now. */
function summaryOf(counts: readonly FiringCount[], nameOf: ReadonlyMap<string, string>): AlertSummary {
  const sumOf = (some: readonly FiringCount[]) => ({
    firing: some.reduce((sum, { firing }) => sum + firing, 0),
    unacknowledged: some.reduce((sum, { unacknowledged }) => sum + unacknowledged, 0),
  });
  const of = (severity: FiringCount["severity"]) => sumOf(counts.filter((one) => one.severity === severity));
  return {
    ...sumOf(counts),
    severities: { critical: of("critical"), warning: of("warning"), info: of("info") },
    rules: counts
      .map((one) => ({ ...one, rule_name: nameOf.get(one.rule_id) ?? one.rule_name }))
      .sort((one, other) => other.firing - one.firing),
  };
}

/** Members of a patch that the kind of the channel does not have. */
function foreignMembers(channel: ChannelInput, patch: ChannelPatch): Violation[] {
  return Object.keys(definedMembers(patch))
    .filter((name) => !Object.hasOwn(channel, name))
    .map((name) => ({ pointer: `/${name}`, detail: `does not go with \`${channel.kind}\`` }));
}

/** Whether alerts of the rule as it was say nothing of the rule as it is. */
function holdsForOther(before: NewRuleParts, after: NewRuleParts): boolean {
  const partsOf = ({ when, where, for: length }: NewRuleParts) => JSON.stringify([when, where, length]);
  return partsOf(before) !== partsOf(after);
}

type NewRuleParts = Pick<RuleInput, "when" | "where" | "for">;
