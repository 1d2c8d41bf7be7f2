import { z } from "zod";
import {
  CreatedWebhook,
  DeadDelivery,
  Webhook,
  WebhookInput,
  WebhookPatch,
  WebhookSecret,
  WebhookTest,
  webhookLimits,
} from "../model/webhook.ts";
import { webhooks as contract } from "../webhooks.ts";
import { defineRoutes, get, paging, post, remove } from "./route.ts";

const id = z.string().min(1).max(128).describe("Id of the webhook.");
const ofWebhook = { params: z.object({ id }), absent: { id: "webhook_not_found" } } as const;
const tagged = { tag: "Webhooks", auth: ["master", "session"] } as const;
/** Who has a secret can pretend to be the mesh; no session gets one. */
const secret = { tag: "Webhooks", auth: ["master"] } as const;

/** URLs that are sent what happens (api.md, Webhooks). */
export const webhooks = defineRoutes({
  createWebhook: {
    ...post("/webhooks", "webhook"),
    ...secret,
    summary: "Send what happens to a URL",
    description: `From the answer on, each such event is sent at least once. At most ${webhookLimits.webhooks} webhooks.`,
    body: { schema: WebhookInput, optional: false },
    answers: {
      201: {
        description: "The webhook and, only here, its secret.",
        json: CreatedWebhook,
        headers: { Location: "Where the webhook is read." },
      },
    },
    calls: [{ contract, methods: ["createWebhook"] }],
  },
  listWebhooks: {
    ...get("/webhooks"),
    ...tagged,
    summary: "List webhooks, oldest first",
    query: z.object(paging.query),
    answers: { 200: { description: "The webhooks.", json: z.array(Webhook), headers: paging.headers } },
    calls: [{ contract, methods: ["listWebhooks"] }],
  },
  readWebhook: {
    ...get("/webhooks/:id"),
    ...tagged,
    summary: "Read a webhook",
    ...ofWebhook,
    answers: { 200: { description: "The webhook.", json: Webhook } },
    calls: [{ contract, methods: ["readWebhook"] }],
  },
  patchWebhook: {
    ...post("/webhooks/:id", "webhook"),
    ...tagged,
    summary: "Change, disable or enable a webhook",
    ...ofWebhook,
    body: { schema: WebhookPatch, optional: false },
    answers: { 200: { description: "The webhook.", json: Webhook } },
    calls: [{ contract, methods: ["patchWebhook"] }],
  },
  deleteWebhook: {
    ...remove("/webhooks/:id", "webhook"),
    ...tagged,
    summary: "Delete a webhook",
    description: "What waits and what was given up is dropped; a request that is under way ends.",
    ...ofWebhook,
    answers: { 204: { description: "Done." } },
    calls: [{ contract, methods: ["deleteWebhook"] }],
  },
  readWebhookSecret: {
    ...get("/webhooks/:id/secret"),
    ...secret,
    summary: "Read the secret of a webhook",
    ...ofWebhook,
    answers: { 200: { description: "The secret.", json: WebhookSecret } },
    calls: [{ contract, methods: ["readSecret"] }],
  },
  rotateWebhookSecret: {
    ...post("/webhooks/:id/secret", "webhook"),
    ...secret,
    summary: "Replace the secret of a webhook",
    description: "Requests carry the signatures of both for 24 h.",
    ...ofWebhook,
    answers: { 200: { description: "The new secret.", json: WebhookSecret } },
    calls: [{ contract, methods: ["rotateSecret"] }],
  },
  testWebhook: {
    ...post("/webhooks/:id/test", null),
    ...tagged,
    summary: "Send an event `devmesh.test` now",
    description: "Once, whether the webhook is enabled or not. The answer says what became of it.",
    ...ofWebhook,
    answers: { 200: { description: "What became of it.", json: WebhookTest } },
    calls: [{ contract, methods: ["testWebhook"] }],
  },
  listDeadDeliveries: {
    ...get("/webhooks/:id/dead"),
    ...tagged,
    summary: "List events that were given up, oldest first",
    description: "They are kept for 30 days.",
    ...ofWebhook,
    query: z.object(paging.query),
    answers: { 200: { description: "The events.", json: z.array(DeadDelivery), headers: paging.headers } },
    calls: [{ contract, methods: ["listDeadDeliveries"] }],
  },
  retryDeadDeliveries: {
    ...post("/webhooks/:id/dead/retry", "webhook"),
    ...tagged,
    summary: "Send all events again that were given up",
    ...ofWebhook,
    answers: {
      200: {
        description: "How many.",
        json: z.object({ queued: z.int().min(0).describe("Number of events that wait again.") }).meta({
          id: "RetriedDeliveries",
          description: "How many events wait again.",
          example: { queued: 3 },
        }),
      },
    },
    calls: [{ contract, methods: ["retryDeadDeliveries"] }],
  },
  retryDeadDelivery: {
    ...post("/webhooks/:id/dead/:dead/retry", "webhook"),
    ...tagged,
    summary: "Send an event again that was given up",
    params: z.object({ id, dead: z.string().min(1).max(32).describe("Id of the dead letter.") }),
    absent: { id: "webhook_not_found", dead: "dead_letter_not_found" },
    answers: { 204: { description: "It waits again." } },
    calls: [{ contract, methods: ["retryDeadDeliveries"] }],
  },
});
