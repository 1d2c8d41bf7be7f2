import { redactUrl, Webhook } from "@devmesh/contracts/model/webhook";
import { describe, expect, test } from "@jest/globals";
import {
  emptyWebhook,
  readNewWebhook,
  readWebhookPatch,
  webhookAsTyped,
  webhookField,
} from "../src/features/webhooks/typed-webhook.ts";
import { webhookLook, webhookStateText } from "../src/features/webhooks/webhook-words.ts";

const typed = { ...emptyWebhook, url: " https://example.com/devmesh " };
const { example } = Webhook.meta() ?? {};
const stored = Webhook.parse(example);

describe("a webhook as it is typed", () => {
  test("is the body of a request, with what was given alone", () => {
    expect(readNewWebhook(typed)).toEqual({
      body: { url: "https://example.com/devmesh", events: ["offline"] },
      faults: {},
    });
    const records = { ...typed, events: ["data"], batch: 50, wait_ms: "", labels: ["barn"] };
    expect(readNewWebhook(records).body).toEqual({
      url: "https://example.com/devmesh",
      events: ["data"],
      labels: ["barn"],
      records: { batch: 50, wait_ms: 0 },
    });
  });

  test("removes what is empty from a stored one, and leaves its URL out unless another one is typed", () => {
    const shown = { ...stored, url: redactUrl(stored.url) };
    const others = { url: "https://other.example/" };
    expect(readWebhookPatch({ ...webhookAsTyped(shown), ...others }, shown).body).toMatchObject(others);
    expect(readWebhookPatch(webhookAsTyped(shown), shown).body).toEqual({
      events: stored.events,
      name: null,
      devices: null,
      labels: null,
    });
  });

  test("says what is wrong at the field that it comes from", () => {
    expect(readNewWebhook({ ...typed, events: ["onlin"] }).faults).toEqual({
      events: "Must be the name of an event.",
    });
    const { faults } = readNewWebhook({ ...typed, events: ["data"], batch: 501, devices: ["a b"] });
    expect(Object.keys(faults).toSorted()).toEqual(["batch", "devices"]);
    expect(["/url", "/records/batch", "/"].map(webhookField)).toEqual(["url", "batch", "url"]);
  });
});

test("the state of a webhook is a word, with the reason of a disabled one", () => {
  const of = (changes: Partial<Webhook>) => {
    const webhook = { ...stored, ...changes };
    return [webhookStateText(webhook), webhookLook(webhook)];
  };
  const failing = { ...stored.state, failing_since: stored.created_at };
  expect(of({})).toEqual(["enabled", "good"]);
  expect(of({ state: failing })).toEqual(["failing", "warn"]);
  expect(of({ enabled: false, disabled_because: "by_hand" })).toEqual(["disabled: by hand", "idle"]);
  expect(of({ enabled: false, disabled_because: "gone" })).toEqual(["disabled: the receiver is gone", "bad"]);
});
