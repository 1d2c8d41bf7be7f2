import { z } from "zod";
import { data } from "../data.ts";
import { devices } from "../devices.ts";
import { TopicFilter } from "../model/acl.ts";
import {
  DataRecord,
  defaultLatestLimit,
  defaultRecordLimit,
  maxLatestLimit,
  maxRecordLimit,
  maxSkip,
} from "../model/data-record.ts";
import { DeviceId } from "../model/device-id.ts";
import { TimestampInput } from "../model/time.ts";
import { mqttBounds } from "../mqtt.ts";
import { defineRoutes, get, queryInteger } from "./route.ts";

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
