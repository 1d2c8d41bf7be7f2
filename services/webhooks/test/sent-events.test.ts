import { type EventText, eventsOfFrames, frameOfEvent } from "@devmesh/contracts/event-frames";
import { Alert } from "@devmesh/contracts/model/alert";
import { Device } from "@devmesh/contracts/model/device";
import { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { Execution } from "@devmesh/contracts/model/execution";
import { Job } from "@devmesh/contracts/model/job";
import { sentEvents } from "@devmesh/contracts/webhook-requests";
import { expect, test } from "@jest/globals";
import { z } from "zod";

const exampleOf = (schema: z.ZodType) => z.globalRegistry.get(schema)?.example;
const device = exampleOf(Device);

/** What each event has besides `id` and `timestamp`. */
const payloads: Readonly<Record<string, object>> = {
  "devices.online": {},
  "devices.offline": {},
  "devices.created": { device },
  "devices.updated": { device },
  "devices.deleted": {},
  "devices.throttled": { why: "bytes", refused_ms: 1_000 },
  "devices.diagnosed": exampleOf(Diagnosis) as object,
  "rpc-bridge.rpc_in": { func: "Sys.Reboot", params: { delay: 1 } },
  "rpc-bridge.rpc_out": { name: "alarm/high", payload: { celsius: 91 } },
  "jobs.execution_changed": { execution: exampleOf(Execution) },
  "jobs.job_changed": { job: exampleOf(Job) },
  "alerts.alert_changed": { alert: exampleOf(Alert) },
  "keys.key_changed": { change: "deleted" },
  "keys.customer_changed": { change: "invited" },
  "webhooks.webhook_changed": { change: "disabled" },
};

test("each event has the data that asyncapi.json describes, and nothing else", () => {
  const events = eventsOfFrames().map(({ service, event }) => `${service}.${event}`);
  expect(Object.keys(payloads).sort()).toEqual(events.sort());
  const described: Readonly<Record<string, { readonly data: z.ZodType }>> = sentEvents;
  for (const [event, payload] of Object.entries(payloads)) {
    const [service = "", name = ""] = event.split(".");
    const text = JSON.stringify({ id: "pump-1", timestamp: "2026-01-31T12:00:00.000Z", ...payload });
    const frame = frameOfEvent({ sequence: 1, service, name, text } satisfies EventText);
    const schema = described[(frame?.name ?? "").replace(/^(rpc\.\w+\.).+/, "$1*")]?.data;
    expect([event, schema?.parse(frame?.data)]).toEqual([event, frame?.data]);
  }
});
