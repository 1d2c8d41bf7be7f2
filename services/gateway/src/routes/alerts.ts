import { lengthOf } from "@devmesh/contracts/model/duration";
import { alertRoutes as routes } from "@devmesh/contracts/rest/alerts";
import { json, noContent, type Within } from "../http/exchange.ts";
import { leadingString } from "../http/json-bytes.ts";
import { answerList } from "../http/paged-list.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";

/** Timeout of a trial, in milliseconds. */
const trialMs = 15_000;

/** Timeout of a count, in milliseconds. */
const countMs = 5_000;

/** Rules, alerts, channels and silences (api.md, Alerts). */
export function alertHandlers(alerts: GatewayClients["alerts"]): Handlers<keyof typeof routes> {
  const countOf =
    (of: "rules" | "channels" | "silences", { within }: { readonly within: Within }) =>
    () =>
      within(countMs, async (call) => (await alerts.countSettings({}, call))[of]);

  return {
    listRules: (request) =>
      answerList(alerts.bytes.listRules, routes.listRules.path, request, countOf("rules", request)),

    async createRule({ body, call }) {
      const bytes = await alerts.bytes.createRule({ rule: body }, call);
      const id = leadingString(bytes, "id");
      const headers = { Location: routes.readRule.path.replace(":id", id) };
      return { ...json(bytes, { status: 201, headers }), created: id };
    },

    tryRule: async ({ body, query: { over = "P7D" }, within }) =>
      within(trialMs, async (call) =>
        json(await alerts.bytes.tryRule({ rule: body, over_ms: Math.round(lengthOf(over)) }, call)),
      ),

    readRule: async ({ params, call }) => json(await alerts.bytes.readRule({ id: params.id }, call)),

    changeRule: async ({ params, body, call }) =>
      json(await alerts.bytes.changeRule({ id: params.id, patch: body }, call)),

    async deleteRule({ params, call }) {
      await alerts.bytes.deleteRule({ id: params.id }, call);
      return noContent;
    },

    listAlerts({ query, within }) {
      const { limit: _, after: __, ...conditions } = query;
      return answerList(
        (page, call) => alerts.bytes.listAlerts({ ...conditions, ...page }, call),
        routes.listAlerts.path,
        { query, within },
        () => within(countMs, async (call) => (await alerts.countAlerts(conditions, call)).count),
      );
    },

    summarizeAlerts: async ({ call }) => json(await alerts.bytes.summarizeAlerts({}, call)),

    readAlert: async ({ params, call }) => json(await alerts.bytes.readAlert({ id: params.id }, call)),

    changeAlert: async ({ params, body, keyId = "", call }) =>
      json(await alerts.bytes.changeAlert({ id: params.id, patch: body, key_id: keyId }, call)),

    listChannels: (request) =>
      answerList(alerts.bytes.listChannels, routes.listChannels.path, request, countOf("channels", request)),

    async createChannel({ body, call }) {
      const bytes = await alerts.bytes.createChannel({ channel: body }, call);
      return { ...json(bytes, { status: 201 }), created: leadingString(bytes, "id") };
    },

    changeChannel: async ({ params, body, call }) =>
      json(await alerts.bytes.changeChannel({ id: params.id, patch: body }, call)),

    async testChannel({ params, call }) {
      await alerts.bytes.testChannel({ id: params.id }, call);
      return noContent;
    },

    async deleteChannel({ params, call }) {
      await alerts.bytes.deleteChannel({ id: params.id }, call);
      return noContent;
    },

    listSilences: (request) =>
      answerList(alerts.bytes.listSilences, routes.listSilences.path, request, countOf("silences", request)),

    async createSilence({ body, call }) {
      const bytes = await alerts.bytes.createSilence({ silence: body }, call);
      return { ...json(bytes, { status: 201 }), created: leadingString(bytes, "id") };
    },

    async deleteSilence({ params, call }) {
      await alerts.bytes.deleteSilence({ id: params.id }, call);
      return noContent;
    },
  };
}
