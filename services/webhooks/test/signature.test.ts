import { describe, expect, test } from "@jest/globals";
import { CloudEvent } from "cloudevents";
import { Webhook } from "standardwebhooks";
import { bodyOf, createCloudEvents } from "../src/deliveries/message.ts";
import { createSecrets } from "../src/requests/signature.ts";

const secrets = createSecrets(Buffer.alloc(32, 7));
const day = 86_400_000;
const now = Date.now();
const events = createCloudEvents("https://mesh.example.com/api/v2");
const frame = { seq: 12, id: "pump", name: "offline", data: {}, timestamp: "2026-01-31T12:00:00.000Z" };

describe("a signature", () => {
  const { id, body } = bodyOf({ event: events.ofFrame(frame, "k3x9"), format: "cloudevents" });
  const first = { id: "wh_1", generation: 1, generation_at: now - 2 * day };
  const verifies = (secret: string, headers: Record<string, string>) => {
    try {
      new Webhook(secret).verify(body, headers);
      return true;
    } catch {
      return false;
    }
  };

  test("verifies with the library of Standard Webhooks", () => {
    const headers = secrets.sign(first, { id, body }, now);
    expect(verifies(secrets.secretOf(first), headers)).toBe(true);
    expect(verifies(secrets.secretOf({ id: "wh_2", generation: 1 }), headers)).toBe(false);
    expect(headers["webhook-id"]).toBe("k3x9-12");
  });

  test("is of both secrets for 24 h after a rotation, and of the new one alone after them", () => {
    const second = { id: "wh_1", generation: 2, generation_at: now - day + 1_000 };
    const during = secrets.sign(second, { id, body }, now);
    expect([first, second].map((one) => verifies(secrets.secretOf(one), during))).toEqual([true, true]);
    const after = secrets.sign({ ...second, generation_at: now - day }, { id, body }, now);
    expect([first, second].map((one) => verifies(secrets.secretOf(one), after))).toEqual([false, true]);
  });
});

describe("a body", () => {
  test("is an event that the SDK of CloudEvents takes", () => {
    const { body } = bodyOf({ event: events.ofFrame(frame, "k3x9"), format: "cloudevents" });
    const event = new CloudEvent(JSON.parse(body));
    expect(event.validate()).toBe(true);
    expect(event).toMatchObject({ type: "devmesh.offline", subject: "pump", sequence: "0000000000000012" });
  });

  test("for a chat is its text, which can neither call everybody nor be markup", () => {
    const event = events.of({ id: "a", type: "devmesh.alert", time: frame.timestamp, data: {} });
    const text = "<!channel> pump & co";
    const read = (format: "slack" | "discord") => JSON.parse(bodyOf({ event, format, text }).body);
    expect(read("slack")).toEqual({ text: "&lt;!channel&gt; pump &amp; co" });
    expect(read("discord")).toEqual({ content: text, allowed_mentions: { parse: [] } });
    expect(bodyOf({ event, format: "ntfy", text })).toMatchObject({ body: text });
  });
});
