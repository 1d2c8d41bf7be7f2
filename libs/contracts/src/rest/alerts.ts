import { z } from "zod";
import { alerts as contract } from "../alerts.ts";
import { Alert, AlertPatch, AlertState, AlertSummary, RuleTrial } from "../model/alert.ts";
import { DeviceId } from "../model/device-id.ts";
import { durationBetween } from "../model/duration.ts";
import {
  AlertChannel,
  AlertRule,
  ChannelInput,
  ChannelPatch,
  channelTests,
  checkNewRule,
  RuleInput,
  RulePatch,
  Severity,
} from "../model/rule.ts";
import { Silence, SilenceInput } from "../model/silence.ts";
import { countedPaging, defineRoutes, get, paging, post, remove } from "./route.ts";

const tagged = { tag: "Alerts", auth: ["master", "session"] } as const;
const identified = (what: string) =>
  z.object({ id: z.string().min(1).max(128).describe(`Id of the ${what}.`) });
const ofRule = { params: identified("rule"), absent: { id: "rule_not_found" } } as const;
const ofAlert = { params: identified("alert"), absent: { id: "alert_not_found" } } as const;
const ofChannel = { params: identified("channel"), absent: { id: "channel_not_found" } } as const;
const ofSilence = { params: identified("silence"), absent: { id: "silence_not_found" } } as const;
const done = { 204: { description: "Done." } } as const;

/** Rules, what they found, and who is notified (api.md, Alerts). */
export const alertRoutes = defineRoutes({
  listRules: {
    ...get("/rules"),
    ...tagged,
    summary: "List rules, oldest first",
    query: z.object(paging.query),
    answers: {
      200: { description: "The rules.", json: z.array(AlertRule), headers: countedPaging("rules") },
    },
    calls: [{ contract, methods: ["listRules", "countSettings"] }],
  },
  createRule: {
    ...post("/rules", "rule"),
    ...tagged,
    summary: "Create a rule",
    body: { schema: RuleInput, optional: false, membersOnce: true, checkBesides: checkNewRule },
    answers: {
      201: { description: "The rule.", json: AlertRule, headers: { Location: "Where the rule is read." } },
    },
    calls: [{ contract, methods: ["createRule"] }],
  },
  tryRule: {
    ...post("/rules/try", null),
    ...tagged,
    summary: "See what a rule would have done",
    description:
      "Stores nothing. A rule on records is tried on the stored records of that time, for 10 s at most, and one on events on those of the last hour; one on connections or shadows answers which devices meet it now.",
    query: z.object({
      over: durationBetween("PT0S", "P90D").optional().meta({
        description: "How far back; `P7D` by default.",
        example: "P7D",
      }),
    }),
    cost: { tokens: 19, of: "A trial of a rule", applies: () => true },
    body: { schema: RuleInput, optional: false, membersOnce: true, checkBesides: checkNewRule },
    answers: { 200: { description: "What it would have done.", json: RuleTrial } },
    calls: [{ contract, methods: ["tryRule"] }],
  },
  readRule: {
    ...get("/rules/:id"),
    ...tagged,
    summary: "Read a rule",
    ...ofRule,
    answers: { 200: { description: "The rule.", json: AlertRule } },
    calls: [{ contract, methods: ["readRule"] }],
  },
  changeRule: {
    ...post("/rules/:id", "rule"),
    ...tagged,
    summary: "Change a rule",
    description:
      "Members that are left out stay. Alerts of a rule that is disabled, or of which `when`, `where` or `for` is replaced, clear.",
    ...ofRule,
    body: { schema: RulePatch, optional: false, membersOnce: true },
    answers: { 200: { description: "The rule as it is now.", json: AlertRule } },
    calls: [{ contract, methods: ["changeRule"] }],
  },
  deleteRule: {
    ...remove("/rules/:id", "rule"),
    ...tagged,
    summary: "Delete a rule; its alerts clear",
    ...ofRule,
    answers: done,
    calls: [{ contract, methods: ["deleteRule"] }],
  },
  listAlerts: {
    ...get("/alerts"),
    ...tagged,
    summary: "List alerts, newest first",
    description: "All that meet the query. Alerts are kept for 90 days after they cleared.",
    query: z.object({
      ...paging.query,
      state: AlertState.optional().meta({ description: "Only those in this state." }),
      severity: Severity.optional().meta({ description: "Only those of this severity." }),
      device_id: DeviceId.optional().meta({ description: "Only those of this device." }),
      rule_id: z.string().max(128).optional().meta({ description: "Only those of this rule." }),
    }),
    answers: { 200: { description: "The alerts.", json: z.array(Alert), headers: countedPaging("alerts") } },
    calls: [{ contract, methods: ["listAlerts", "countAlerts"] }],
  },
  summarizeAlerts: {
    ...get("/alerts/summary"),
    ...tagged,
    summary: "Count what fires, by severity and rule",
    answers: { 200: { description: "What fires.", json: AlertSummary } },
    calls: [{ contract, methods: ["summarizeAlerts"] }],
  },
  readAlert: {
    ...get("/alerts/:id"),
    ...tagged,
    summary: "Read an alert",
    ...ofAlert,
    answers: { 200: { description: "The alert.", json: Alert } },
    calls: [{ contract, methods: ["readAlert"] }],
  },
  changeAlert: {
    ...post("/alerts/:id", null),
    ...tagged,
    summary: "Acknowledge an alert, or write a note on it",
    ...ofAlert,
    body: { schema: AlertPatch, optional: false },
    answers: { 200: { description: "The alert as it is now.", json: Alert } },
    calls: [{ contract, methods: ["changeAlert"] }],
  },
  listChannels: {
    ...get("/channels"),
    ...tagged,
    summary: "List channels, oldest first",
    query: z.object(paging.query),
    answers: {
      200: { description: "The channels.", json: z.array(AlertChannel), headers: countedPaging("channels") },
    },
    calls: [{ contract, methods: ["listChannels", "countSettings"] }],
  },
  createChannel: {
    ...post("/channels", "channel"),
    ...tagged,
    summary: "Create a channel, where alerts are sent",
    body: { schema: ChannelInput, optional: false },
    answers: { 201: { description: "The channel.", json: AlertChannel } },
    calls: [{ contract, methods: ["createChannel"] }],
  },
  changeChannel: {
    ...post("/channels/:id", "channel"),
    ...tagged,
    summary: "Change a channel",
    description: "Members that are left out stay, and so does its kind.",
    ...ofChannel,
    body: { schema: ChannelPatch, optional: false },
    answers: { 200: { description: "The channel as it is now.", json: AlertChannel } },
    calls: [{ contract, methods: ["changeChannel"] }],
  },
  testChannel: {
    ...post("/channels/:id/test", null),
    ...tagged,
    summary: "Send a test message to a channel",
    description: `At most ${channelTests.perTarget} an hour to each address or webhook.`,
    ...ofChannel,
    answers: { 204: { description: "The message is queued." } },
    calls: [{ contract, methods: ["testChannel"] }],
  },
  deleteChannel: {
    ...remove("/channels/:id", "channel"),
    ...tagged,
    summary: "Delete a channel that no rule notifies",
    ...ofChannel,
    answers: done,
    calls: [{ contract, methods: ["deleteChannel"] }],
  },
  listSilences: {
    ...get("/silences"),
    ...tagged,
    summary: "List silences, oldest first",
    description: "Those that have ended are listed for 7 days.",
    query: z.object(paging.query),
    answers: {
      200: { description: "The silences.", json: z.array(Silence), headers: countedPaging("silences") },
    },
    calls: [{ contract, methods: ["listSilences", "countSettings"] }],
  },
  createSilence: {
    ...post("/silences", "silence"),
    ...tagged,
    summary: "Create a silence: a time in which alerts are kept but not sent",
    description: "What still fires when it ends is sent then.",
    body: { schema: SilenceInput, optional: false, membersOnce: true },
    answers: { 201: { description: "The silence.", json: Silence } },
    calls: [{ contract, methods: ["createSilence"] }],
  },
  deleteSilence: {
    ...remove("/silences/:id", "silence"),
    ...tagged,
    summary: "End a silence",
    ...ofSilence,
    answers: done,
    calls: [{ contract, methods: ["deleteSilence"] }],
  },
});
