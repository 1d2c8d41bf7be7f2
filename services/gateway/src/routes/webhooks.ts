import { redactUrl } from "@devmesh/contracts/model/webhook";
import type { KeyKind } from "@devmesh/contracts/principal";
import { webhooks as routes } from "@devmesh/contracts/rest/webhooks";
import { json, noContent } from "../http/exchange.ts";
import { leadingString } from "../http/json-bytes.ts";
import { answerList } from "../http/paged-list.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";

/** URLs that are sent what happens (api.md, Webhooks). */
export function webhookHandlers(webhooks: GatewayClients["webhooks"]): Handlers<keyof typeof routes> {
  return {
    async createWebhook({ body, call }) {
      const bytes = await webhooks.bytes.createWebhook(body, call);
      const id = leadingString(bytes, "id");
      const headers = { Location: routes.readWebhook.path.replace(":id", id) };
      return { ...json(bytes, { status: 201, headers }), created: id };
    },

    listWebhooks: (request) =>
      answerList(
        async (page, call) => urlsShownTo(request.keyKind, await webhooks.bytes.listWebhooks(page, call)),
        routes.listWebhooks.path,
        request,
        null,
      ),

    readWebhook: async ({ params, keyKind, call }) =>
      json(urlsShownTo(keyKind, await webhooks.bytes.readWebhook({ id: params.id }, call))),

    patchWebhook: async ({ params, body, keyKind, call }) =>
      json(urlsShownTo(keyKind, await webhooks.bytes.patchWebhook({ id: params.id, patch: body }, call))),

    async deleteWebhook({ params, call }) {
      await webhooks.bytes.deleteWebhook({ id: params.id }, call);
      return noContent;
    },

    readWebhookSecret: async ({ params, call }) =>
      json(await webhooks.bytes.readSecret({ id: params.id }, call)),

    rotateWebhookSecret: async ({ params, call }) =>
      json(await webhooks.bytes.rotateSecret({ id: params.id }, call)),

    testWebhook: async ({ params, within }) =>
      json(await within(testMs, (call) => webhooks.bytes.testWebhook({ id: params.id }, call))),

    listDeadDeliveries: (request) =>
      answerList(
        (page, call) => webhooks.bytes.listDeadDeliveries({ ...page, id: request.params.id }, call),
        routes.listDeadDeliveries.path.replace(":id", request.params.id),
        request,
        null,
      ),

    retryDeadDeliveries: async ({ params, within }) =>
      json(await within(retryMs, (call) => webhooks.bytes.retryDeadDeliveries({ id: params.id }, call))),

    async retryDeadDelivery({ params, call }) {
      await webhooks.bytes.retryDeadDeliveries({ id: params.id, dead: params.dead }, call);
      return noContent;
    },
  };
}

/** A receiver has 15 s; dead letters are queued again one by one. In milliseconds. */
const testMs = 20_000;
const retryMs = 30_000;

/** Webhooks with their URLs as a key may read them: in whole with a master key alone. */
function urlsShownTo(keyKind: KeyKind | "none", webhooks: Uint8Array): Uint8Array {
  if (keyKind === "master") return webhooks;
  const redacted = (name: string, value: unknown) =>
    name === "url" && typeof value === "string" ? redactUrl(value) : value;
  return Buffer.from(JSON.stringify(JSON.parse(Buffer.from(webhooks).toString(), redacted)));
}
