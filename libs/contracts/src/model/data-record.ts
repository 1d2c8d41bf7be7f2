import { z } from "zod";
import { DeviceId } from "./device-id.ts";
import { Timestamp } from "./time.ts";

/** A message that a device published below `db/<its id>/`, as it was stored. */
export const DataRecord = z
  .object({
    /** Ascending in the order of storing; the cursor of `after`. */
    id: z.int(),
    /** When the broker took the message. */
    timestamp: Timestamp,
    device_id: DeviceId,
    topic: z.string(),
    /** The payload as text; base64 where it is not UTF-8. */
    message: z.string(),
    encoding: z.literal("base64").optional(),
  })
  .meta({ id: "DataRecord" });
export type DataRecord = z.infer<typeof DataRecord>;

/** `limit` of `GET /data` when none is given; an export without one gives all that match. */
export const defaultRecordLimit = 100;
/** The most records that one `GET /data` answers (spec, Limits). */
export const maxRecordLimit = 5000;
/** The furthest that `skip` reaches (api.md, Stored data). */
export const maxSkip = 1_000_000;
