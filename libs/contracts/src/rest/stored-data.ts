import { z } from "zod";
import { data } from "../data.ts";
import { DataRecord, defaultRecordLimit, maxRecordLimit, maxSkip } from "../model/data-record.ts";
import { DeviceId } from "../model/device-id.ts";
import { TimestampInput } from "../model/time.ts";
import { defineRoutes, get, queryInteger } from "./route.ts";

/** Of both queries of records: leads on, and the cursor that it holds. */
export const recordPaging = {
  after: z.string().max(64).optional().meta({
    description: "Id of the last record seen, or the cursor of a `Link`: what was stored after it.",
  }),
  headers: { Link: 'The records that follow, `rel="next"`; absent when there are none yet.' },
} as const;

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
      after: recordPaging.after,
    }),
    answers: {
      200: {
        description: "The records.",
        json: z.array(DataRecord),
        headers: recordPaging.headers,
        other: { "application/x-ndjson": z.string(), "text/csv": z.string() },
      },
    },
    calls: [{ contract: data, methods: ["queryRecords"] }],
  },
});
