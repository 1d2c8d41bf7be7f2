import { z } from "zod";
import { DeviceId } from "./device-id.ts";
import { Timestamp } from "./time.ts";

/** A message that a device published below `db/<its id>/`, as it was stored. */
export const DataRecord = z
  .object({
    id: z.int().describe("Ascending number in the order of storing; a value for `after`."),
    timestamp: Timestamp.describe("When the broker took the message."),
    device_id: DeviceId.describe("The device that published it."),
    topic: z.string().describe("The whole MQTT topic, `db/<device id>/…`."),
    message: z.string().describe("The payload as text, at most 256 KB; base64 where it is not UTF-8."),
    encoding: z.literal("base64").optional().describe("Present where `message` is base64."),
  })
  .meta({
    id: "DataRecord",
    description: "A message that a device published below `db/<its id>/`, as it was stored.",
    example: {
      id: 4711,
      timestamp: "2026-01-31T12:00:00.000Z",
      device_id: "pump-1",
      topic: "db/pump-1/temp",
      message: '{"celsius":21.5}',
    },
  });
export type DataRecord = z.infer<typeof DataRecord>;

/** `limit` of `GET /data` when none is given; an export without one gives all that match. */
export const defaultRecordLimit = 100;
/** The most records that one `GET /data` answers (spec, Limits). */
export const maxRecordLimit = 5000;
/** The furthest that `skip` reaches (api.md, Stored data). */
export const maxSkip = 1_000_000;

/** `limit` of the newest records of a device's topics when none is given. */
export const defaultLatestLimit = 200;
/** The most topics in one answer, and the most that are counted (api.md, Stored data). */
export const maxLatestLimit = 1000;
