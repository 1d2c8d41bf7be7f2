import { z } from "zod";
import { JsonValue } from "./json.ts";
import { Timestamp } from "./time.ts";

/** An event as webhooks send it: CloudEvents 1.0 in its JSON format. */
export const CloudEvent = z
  .object({
    specversion: z.literal("1.0").describe("Version of CloudEvents."),
    id: z.string().min(1).describe("Unique; each request with it has it as `webhook-id`."),
    source: z.string().describe("The API that the event comes from."),
    type: z.string().describe("`devmesh.` and the name of the frame."),
    subject: z.string().optional().describe("Id of the device, or of what else it is about."),
    time: Timestamp.describe("When it happened."),
    sequence: z
      .string()
      .optional()
      .describe(
        "Ascends in the order in which things happened; 16 digits. A record, `gap` and `test` have none.",
      ),
    datacontenttype: z.literal("application/json").describe("Media type of `data`."),
    data: JsonValue.describe("As in a frame of the notification stream."),
  })
  .meta({
    id: "CloudEvent",
    description: "An event as webhooks send it.",
    example: {
      specversion: "1.0",
      id: "mh2k9x1c-12345",
      source: "https://devmesh.example.com/api/v2",
      type: "devmesh.offline",
      subject: "pump-1",
      time: "2026-01-31T12:00:00.000Z",
      sequence: "0000000000012345",
      datacontenttype: "application/json",
      data: {},
    },
  });
export type CloudEvent = z.infer<typeof CloudEvent>;
