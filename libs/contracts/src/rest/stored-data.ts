import { z } from "zod";
import { data } from "../data.ts";
import { DataRecord, defaultRecordLimit, maxRecordLimit, maxSkip } from "../model/data-record.ts";
import { DeviceId } from "../model/device-id.ts";
import { TimestampInput } from "../model/time.ts";
import { defineRoutes, get, queryInteger } from "./route.ts";

/** `GET /data`, for master keys and device keys (api.md, Stored data). */
export const storedData = defineRoutes({
  queryRecords: {
    ...get("/data"),
    tag: "Stored data",
    summary: "Read stored records, oldest first",
    description:
      "A device key sees only `db/<its device>/`. With `Accept: application/x-ndjson` or `text/csv` the answer is a streamed export without the limit of 5,000.",
    auth: ["master", "device_key"],
    query: z.object({
      skip: queryInteger({
        min: -maxSkip,
        max: maxSkip,
        default: 0,
        description: "Records to skip; negative starts that many before the end.",
      }).optional(),
      limit: queryInteger({
        min: 0,
        max: Number.MAX_SAFE_INTEGER,
        default: defaultRecordLimit,
        description: `At most ${maxRecordLimit}, but for exports.`,
      }).optional(),
      filter: z
        .string()
        .max(4096)
        .optional()
        .meta({ description: "Case-sensitive substring of the topic or of the payload." }),
      since: TimestampInput.optional().meta({ description: "Inclusive." }),
      until: TimestampInput.optional().meta({ description: "Exclusive." }),
      device_id: DeviceId.optional(),
      after: z.string().max(32).optional().meta({ description: "Id of the record to go on behind." }),
    }),
    answers: {
      200: {
        description: "The records.",
        json: z.array(DataRecord),
        other: { "application/x-ndjson": z.string(), "text/csv": z.string() },
      },
    },
    calls: [{ contract: data, methods: ["queryRecords"] }],
  },
});
