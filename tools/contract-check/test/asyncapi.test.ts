import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";
import { WebhookFormat, webhookFrames } from "@devmesh/contracts/model/webhook";
import { expect, test } from "@jest/globals";
import { Ajv } from "ajv";

const text = readFileSync(new URL("../../../docs/asyncapi.json", import.meta.url), "utf8");

/** Paths and messages of what is wrong. It says of each version but the newest that there is a newer one. */
async function problemsOf(document: string): Promise<string[]> {
  const { diagnostics } = await new Parser().parse(document);
  return diagnostics
    .filter(({ code }) => code !== "asyncapi-latest-version")
    .map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test("the document of topics and webhooks is valid AsyncAPI", async () => {
  expect(await problemsOf(text)).toEqual([]);
});

test("the example of each message fits its schema, and no other event would", () => {
  const { id: _, ...document } = JSON.parse(text);
  const ajv = new Ajv({ strict: false, validateFormats: false }).addSchema(document, "document");
  const messages = Object.entries<{ examples: { payload: unknown }[] }>(document.components.messages);
  const takes = (name: string, payload: unknown) =>
    ajv.validate({ $ref: `document#/components/messages/${name}/payload` }, payload);
  for (const [name, { examples }] of messages.filter(([name]) => name.startsWith("webhook.")))
    for (const { payload } of examples)
      expect([name, takes(name, payload), ajv.errors]).toEqual([name, true, null]);
  const [offline] = document.components.messages["webhook.offline"].examples;
  expect(takes("webhook.online", offline.payload)).toBe(false);
  expect(takes("webhook.updated", { ...offline.payload, type: "devmesh.updated" })).toBe(false);
});

test("the document has each event that a webhook may ask for, and the forms of chats", () => {
  const { channels } = JSON.parse(text);
  const names = [...webhookFrames, "rpc.in", "rpc.out", "data", "data.batch", "gap", "test", "alerts"];
  const formats = WebhookFormat.options.filter((format) => format !== "cloudevents");
  expect(Object.keys(channels.webhook.messages).sort()).toEqual(
    [...names, ...formats].map((name) => `webhook.${name}`).sort(),
  );
});

test("a channel or a message that there is not would be found", async () => {
  const wrong = text
    .replace('"#/channels/call"', '"#/channels/none"')
    .replace("messages/event", "messages/none");
  expect((await problemsOf(wrong)).join()).toMatch(/none/);
});
