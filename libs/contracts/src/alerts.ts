import { z } from "zod";
import {
  cursor_invalid,
  defineContract,
  defineEvent,
  defineEvents,
  done,
  doneIfRepeated,
  idempotent,
  notIdempotent,
  ofPage,
  pageOf,
} from "./contract.ts";
import { Alert, AlertPatch, AlertState, AlertSummary, RuleTrial } from "./model/alert.ts";
import { DeviceId } from "./model/device-id.ts";
import {
  AlertChannel,
  AlertRule,
  alertBounds,
  ChannelInput,
  ChannelPatch,
  channelTests,
  RuleInput,
  RulePatch,
  Severity,
} from "./model/rule.ts";
import { Silence, SilenceInput } from "./model/silence.ts";
import { Timestamp } from "./model/time.ts";
import { Violation } from "./model/violation.ts";

const byId = z.object({ id: z.string() });

const rule_not_found = { code: "not_found", when: "There is no rule of that id." } as const;
const alert_not_found = { code: "not_found", when: "There is no alert of that id." } as const;
const channel_not_found = { code: "not_found", when: "There is no channel of that id." } as const;
const silence_not_found = { code: "not_found", when: "There is no silence of that id." } as const;
const alertSelection = {
  state: AlertState.optional(),
  severity: Severity.optional(),
  device_id: DeviceId.optional(),
  rule_id: z.string().optional(),
};
const rule_invalid = {
  code: "invalid_argument",
  when: "A member of the body breaks a rule of rules, or names a channel that does not exist.",
  details: z.array(Violation),
} as const;

const channel_invalid = {
  code: "invalid_argument",
  when: "A member does not go with the kind of the channel, or names a webhook that does not exist.",
  details: z.array(Violation),
} as const;

/** Decides what is wrong, and notifies people. */
export const alerts = defineContract({
  service: "alerts",
  version: 1,
  methods: {
    /** The oldest first. */
    listRules: { ...idempotent, in: z.object(ofPage), out: pageOf(AlertRule), errors: { cursor_invalid } },
    createRule: {
      ...notIdempotent,
      in: z.object({ rule: RuleInput }),
      out: AlertRule,
      errors: {
        rule_invalid,
        too_many_rules: {
          code: "conflict",
          when: `There are ${alertBounds.rules} rules, as many as there may be; one must be deleted first.`,
        },
      },
    },
    /** What a rule would have done with the records of that time; stores nothing. */
    tryRule: {
      ...idempotent,
      deadlineMs: 15_000,
      in: z.object({ rule: RuleInput, over_ms: z.int().min(0) }),
      out: RuleTrial,
      errors: {
        rule_invalid,
        too_many_trials: {
          code: "resource_exhausted",
          when: "Another rule is being tried; retry in some seconds.",
        },
      },
    },
    readRule: { ...idempotent, in: byId, out: AlertRule, errors: { rule_not_found } },
    /** Replaces members. Alerts of a rule that is disabled, or whose condition is replaced, clear. */
    changeRule: {
      ...notIdempotent,
      in: z.object({ id: z.string(), patch: RulePatch }),
      out: AlertRule,
      errors: { rule_not_found, rule_invalid },
    },
    /** Its alerts clear. */
    deleteRule: {
      ...idempotent,
      in: byId,
      out: done,
      errors: { rule_not_found: doneIfRepeated(rule_not_found) },
    },
    /** Newest first. */
    listAlerts: {
      ...idempotent,
      in: z.object({ ...alertSelection, ...ofPage }),
      out: pageOf(Alert),
      errors: { cursor_invalid },
    },
    /** How many alerts `listAlerts` lists. */
    countAlerts: { ...idempotent, in: z.object(alertSelection), out: z.object({ count: z.int().min(0) }) },
    /** What fires, by severity and rule. */
    summarizeAlerts: { ...idempotent, in: z.object({}), out: AlertSummary },
    /** How many rules, channels and silences there are. */
    countSettings: {
      ...idempotent,
      in: z.object({}),
      out: z.object({ rules: z.int().min(0), channels: z.int().min(0), silences: z.int().min(0) }),
    },
    readAlert: { ...idempotent, in: byId, out: Alert, errors: { alert_not_found } },
    changeAlert: {
      ...notIdempotent,
      in: z.object({ id: z.string(), patch: AlertPatch, key_id: z.string() }),
      out: Alert,
      errors: { alert_not_found },
    },
    /** The oldest first. */
    listChannels: {
      ...idempotent,
      in: z.object(ofPage),
      out: pageOf(AlertChannel),
      errors: { cursor_invalid },
    },
    createChannel: {
      ...notIdempotent,
      in: z.object({ channel: ChannelInput }),
      out: AlertChannel,
      errors: {
        channel_invalid,
        too_many_channels: {
          code: "conflict",
          when: `There are ${alertBounds.channels} channels, as many as there may be; one must be deleted first.`,
        },
      },
    },
    /** Replaces members; the kind stays. */
    changeChannel: {
      ...notIdempotent,
      in: z.object({ id: z.string(), patch: ChannelPatch }),
      out: AlertChannel,
      errors: { channel_not_found, channel_invalid },
    },
    /** Queues one message that says that it is a test. */
    testChannel: {
      ...notIdempotent,
      in: byId,
      out: done,
      errors: {
        channel_not_found,
        channel_target_gone: {
          code: "conflict",
          when: "The webhook of the channel was deleted, or is disabled.",
        },
        too_many_tests: {
          code: "resource_exhausted",
          when: `In an hour ${channelTests.perTarget} tests may be sent to one address or webhook, and ${channelTests.total} in all.`,
        },
      },
    },
    deleteChannel: {
      ...idempotent,
      in: byId,
      out: done,
      errors: {
        channel_not_found: doneIfRepeated(channel_not_found),
        channel_in_use: { code: "conflict", when: "A rule notifies the channel." },
      },
    },
    /** The oldest first; those that have ended are kept for some days. */
    listSilences: { ...idempotent, in: z.object(ofPage), out: pageOf(Silence), errors: { cursor_invalid } },
    createSilence: {
      ...notIdempotent,
      in: z.object({ silence: SilenceInput }),
      out: Silence,
      errors: {
        silence_invalid: {
          code: "invalid_argument",
          when: "The silence ends before it begins, or has ended.",
          details: z.array(Violation),
        },
        too_many_silences: {
          code: "conflict",
          when: `There are ${alertBounds.silences} silences, as many as there may be; one must be deleted first.`,
        },
      },
    },
    /** Ends it. */
    deleteSilence: {
      ...idempotent,
      in: byId,
      out: done,
      errors: { silence_not_found: doneIfRepeated(silence_not_found) },
    },
  },
});

/** Best effort: a crash between store and publish can lose the event, never the state. */
export const alertEvents = defineEvents({
  service: "alerts",
  events: {
    /** An alert fired, was acknowledged or cleared. `id`: the device, null for the mesh. */
    alert_changed: {
      ...defineEvent(
        z.object({ id: DeviceId.nullable(), timestamp: Timestamp, alert: Alert }),
        // No device has such an id.
        (event) => event.id ?? "_mesh",
      ),
      unacknowledged: true,
    },
  },
});
