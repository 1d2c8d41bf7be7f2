import { z } from "zod";
import { data } from "../data.ts";
import { devices } from "../devices.ts";
import { TopicFilter } from "../model/acl.ts";
import { ConditionInput } from "../model/condition-text.ts";
import {
  DataRecord,
  defaultLatestLimit,
  defaultRecordLimit,
  maxLatestLimit,
  maxRecordLimit,
  maxSkip,
} from "../model/data-record.ts";
import { DeviceId } from "../model/device-id.ts";
import { Since } from "../model/duration.ts";
import {
  DeviceSeries,
  Every,
  maxPoints,
  maxSeriesOfAnswer,
  maxSeriesOfDevice,
  SeriesAnswer,
  SeriesPointer,
  SeriesTopic,
  seriesFunctions,
} from "../model/series.ts";
import { TimestampInput } from "../model/time.ts";
import { mqttBounds } from "../mqtt.ts";
import { defineRoutes, get, QueryBoolean, queryInteger } from "./route.ts";

/** Several values in one parameter, separated by commas. */
function listOf<S extends z.ZodType<unknown, string>>(item: S, separator: RegExp, most: number) {
  return z
    .string()
    .transform((text) => text.split(separator))
    .pipe(z.array(item).max(most));
}

const listing = {
  tag: "Stored data",
  answers: {
    200: {
      description: "The series, by topic and pointer.",
      json: z.array(DeviceSeries),
      headers: {
        "Left-Out": `How many numbers are in no series, since the device has ${maxSeriesOfDevice} already; absent for none.`,
      },
    },
  },
} as const;

/** Of both queries of records: leads on, and the cursor that it holds. */
export const recordPaging = {
  after: z.string().max(64).optional().meta({
    description: "Id of the last record seen, or the cursor of a `Link`: what was stored after it.",
  }),
  headers: { Link: 'The records that follow, `rel="next"`; absent when there are none yet.' },
} as const;

const latest = {
  tag: "Stored data",
  description: `Ordered by topic. \`Total-Count\` is the number of topics, counted up to ${maxLatestLimit}.`,
  query: z.object({
    limit: queryInteger({
      min: 1,
      max: maxLatestLimit,
      default: defaultLatestLimit,
      description: "Most topics in the answer.",
    }),
    after: z
      .string()
      .max(mqttBounds.recordTopicBytes)
      .optional()
      .meta({ description: "Topic of the last record of the page before, as in its `Link`." }),
  }),
  answers: {
    200: {
      description: "The newest record of each topic.",
      json: z.array(DataRecord),
      headers: {
        Link: 'The topics that follow, `rel="next"`; absent on the last page.',
        "Total-Count": `How many topics there are, up to ${maxLatestLimit}.`,
      },
    },
  },
} as const;

/** Of queries of numbers: the range, and how it is answered. */
export const seriesAsking = {
  query: {
    from: Since.optional().meta({ description: "A time, or a duration back from now; P1D by default." }),
    until: Since.optional().meta({ description: "Exclusive; now by default." }),
    every: Every.optional().meta({ description: "Length of a span; `auto`, some 500 points, by default." }),
    fn: listOf(z.enum(seriesFunctions), /,/, seriesFunctions.length)
      .optional()
      .meta({
        type: "string",
        description: `What each point has: ${seriesFunctions.join(", ")}; \`avg,min,max\` by default.`,
      }),
    tz: z.string().max(64).optional().meta({ description: "Name of a time zone (IANA); UTC by default." }),
    fill: QueryBoolean.optional().meta({
      description: "Whether spans without numbers are answered, with nulls.",
    }),
  },
  answers: {
    200: {
      description: "The numbers.",
      json: SeriesAnswer,
      other: {
        "text/csv": z.string().meta({
          description: "RFC 4180, with a line of names.",
          example: "time,pump-1 temp/celsius avg\r\n2026-01-31T10:00:00.000Z,21.5\r\n",
        }),
      },
    },
  },
} as const;

/** Stored records, for master keys, sessions and device keys (api.md, Stored data). */
export const storedData = defineRoutes({
  queryRecords: {
    ...get("/data"),
    tag: "Stored data",
    summary: "Read stored records, oldest first",
    description:
      "A device key sees only `db/<its device>/`. With `Accept: application/x-ndjson` or `text/csv` the answer is a streamed export without the limit of 5,000.",
    auth: ["master", "session", "device_key"],
    query: z.object({
      skip: queryInteger({
        min: -maxSkip,
        max: maxSkip,
        default: 0,
        description: "Records to skip; negative starts that many before the end.",
      }),
      limit: queryInteger({
        min: 0,
        max: Number.MAX_SAFE_INTEGER,
        default: defaultRecordLimit,
        description: `At most ${maxRecordLimit}, but for exports.`,
      }),
      filter: z
        .string()
        .max(4096)
        .optional()
        .meta({ description: "Case-sensitive substring of the topic or of the payload." }),
      since: TimestampInput.optional().meta({ description: "Inclusive." }),
      until: TimestampInput.optional().meta({ description: "Exclusive." }),
      device_id: DeviceId.optional().meta({ description: "Only records of this device." }),
      topic: TopicFilter.optional().meta({
        description:
          "Topic filter of MQTT relative to `db/<device id>/`, which it must not begin with; with `device_id` or a device key.",
      }),
      after: recordPaging.after,
    }),
    // No index finds it: the query scans all records.
    cost: {
      tokens: 19,
      of: "A `filter` of one or two characters",
      applies: ({ filter }) => typeof filter === "string" && [1, 2].includes([...filter].length),
    },
    answers: {
      200: {
        description: "The records.",
        json: z.array(DataRecord),
        headers: recordPaging.headers,
        other: {
          "application/x-ndjson": z.string().meta({
            description: "A record in each line.",
            example:
              '{"id":4711,"timestamp":"2026-01-31T12:00:00.000Z","device_id":"pump-1","topic":"db/pump-1/temp","message":"21.5"}\n',
          }),
          "text/csv": z.string().meta({
            description: "RFC 4180, with a line of names.",
            example:
              'id,timestamp,device_id,topic,message,encoding\r\n4711,"2026-01-31T12:00:00.000Z","pump-1","db/pump-1/temp","21.5",\r\n',
          }),
        },
      },
    },
    calls: [{ contract: data, methods: ["queryRecords"] }],
  },
  readSeries: {
    ...get("/series"),
    tag: "Stored data",
    summary: "Read numbers over time",
    description: `Numbers and booleans that devices publish as JSON, by spans of time; at most ${maxPoints} points of each of ${maxSeriesOfAnswer} series. Spans begin at multiples of their length in UTC, days and months at midnight of \`tz\`; \`from\` and \`until\` are rounded outwards to them. With \`Accept: text/csv\` each span is a line and each series has its columns.`,
    auth: ["master", "session", "device_key"],
    query: z.object({
      device_id: listOf(DeviceId, /,/, maxSeriesOfAnswer)
        .optional()
        .meta({ type: "string", description: "Devices, separated by commas. A device key has its own." }),
      where: ConditionInput.optional().meta({
        description: `In place of \`device_id\`: devices that meet a condition, at most ${maxSeriesOfAnswer}.`,
      }),
      topic: SeriesTopic,
      pointer: listOf(SeriesPointer, /,(?=\/|,|$)/, maxSeriesOfAnswer)
        .optional()
        .meta({
          type: "string",
          description:
            "JSON pointers to the numbers, separated by commas; empty, as without it, for messages that are numbers.",
        }),
      ...seriesAsking.query,
    }),
    answers: seriesAsking.answers,
    calls: [
      { contract: data, methods: ["readSeries"] },
      { contract: devices, methods: ["selectDevices"] },
    ],
  },
  listSeries: {
    ...get("/devices/:id/series"),
    ...listing,
    summary: "List the series of numbers of a device",
    description:
      "What can be asked of `GET /series`. A series is listed within a minute of its first number.",
    auth: ["master", "session"],
    params: z.object({ id: DeviceId }),
    absent: { id: "device_not_found" },
    calls: [
      { contract: data, methods: ["listSeries"] },
      { contract: devices, methods: ["readPresence"] },
    ],
  },
  listOwnSeries: {
    ...get("/device/series"),
    ...listing,
    summary: "List the series of numbers of the key's device",
    auth: ["device_key"],
    calls: [{ contract: data, methods: ["listSeries"] }],
  },
  readLatest: {
    ...get("/devices/:id/latest"),
    ...latest,
    summary: "Read the newest record of each topic of a device",
    auth: ["master", "session"],
    params: z.object({ id: DeviceId }),
    absent: { id: "device_not_found" },
    calls: [
      { contract: data, methods: ["readLatest", "countTopics"] },
      // Whether there is such a device.
      { contract: devices, methods: ["readPresence"] },
    ],
  },
  readOwnLatest: {
    ...get("/device/latest"),
    ...latest,
    summary: "Read the newest record of each topic of the key's device",
    auth: ["device_key"],
    calls: [{ contract: data, methods: ["readLatest", "countTopics"] }],
  },
});
