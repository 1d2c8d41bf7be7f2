import { z } from "zod";
import { readBacklog } from "./backlog.ts";
import {
  cursor_invalid,
  defineContract,
  defineEvents,
  defineLiveEvent,
  done,
  idempotent,
  pageOf,
} from "./contract.ts";
import { TopicFilter } from "./model/acl.ts";
import { DataRecord, maxLatestLimit, maxRecordLimit, maxSkip } from "./model/data-record.ts";
import { DeviceId } from "./model/device-id.ts";
import { DiagnosisReports } from "./model/diagnostics.ts";
import { RecordColumns } from "./model/record-columns.ts";
import { DeviceSeries, Every, SeriesPointer, SeriesSpan, SeriesTopic } from "./model/series.ts";
import { Timestamp } from "./model/time.ts";
import { Violation } from "./model/violation.ts";
import { Principal } from "./principal.ts";

const ofDevice = z.object({ device_id: DeviceId });
const readByDevice = z.object({
  principal: Principal,
  /** Id of the caller's key: reading is shared fairly between keys. */
  caller: z.string().max(128).optional(),
  device_id: DeviceId,
});

const not_permitted = {
  code: "permission_denied",
  when: "A key of that kind may not read stored data, or a public key did not name a topic.",
} as const;
const device_mismatch = { code: "permission_denied", when: "The key is bound to another device." } as const;

/** What devices published below `db/`. */
export const data = defineContract({
  service: "data",
  version: 1,
  methods: {
    /**
     * Records in the order of storing. A device key reads `db/<its id>/`; a public key must give `topic`, below its
     * device.
     */
    queryRecords: {
      ...idempotent,
      deadlineMs: 20_000,
      in: z.object({
        principal: Principal,
        /** Id of the caller's key: reading is shared fairly between keys. */
        caller: z.string().max(128).optional(),
        /** Records to skip; negative starts that many before the end. Not together with `after` when negative. */
        skip: z
          .int()
          .min(-maxSkip)
          .max(maxSkip + maxRecordLimit)
          .default(0),
        /** The most the caller still wants; null for all (export). A page may hold fewer. */
        limit: z.int().min(0).nullable(),
        /** Case-sensitive substring of the topic or of the payload text. */
        filter: z.string().optional(),
        /** Inclusive. */
        since: Timestamp.optional(),
        /** Exclusive. */
        until: Timestamp.optional(),
        device_id: DeviceId.optional(),
        /** Relative to `db/<device_id>/`; needs `device_id` or a principal bound to a device. */
        topic: TopicFilter.optional(),
        order: z.enum(["asc", "desc"]).default("asc"),
        /** A record id, or a `next` of an earlier page. */
        after: z.string().optional(),
      }),
      out: pageOf(DataRecord),
      errors: {
        cursor_invalid: {
          code: "invalid_argument",
          when: "`after` is not a record id, or `skip` is negative.",
        },
        filter_invalid: { code: "invalid_argument", when: "`filter` holds a NUL." },
        topic_unbound: { code: "invalid_argument", when: "`topic` is given without a device." },
        not_permitted,
        device_mismatch,
      },
    },
    /**
     * The newest record of each topic of a device, in the order of the topics' bytes. For a master key, and a device
     * key of that device. A page may hold fewer than `limit`.
     */
    readLatest: {
      ...idempotent,
      in: readByDevice.extend({
        limit: z.int().min(1).max(maxLatestLimit),
        /** The topic of the last record of the page before. */
        after: z.string().optional(),
      }),
      out: pageOf(DataRecord),
      errors: {
        cursor_invalid,
        not_permitted,
        device_mismatch,
      },
    },
    /** When the newest record of each topic of all devices was stored, in the order of the topics' bytes. */
    listLatest: {
      ...idempotent,
      deadlineMs: 10_000,
      in: z.object({
        limit: z.int().min(1).max(maxLatestLimit),
        /** The topic of the last one of the page before. */
        after: z.string().optional(),
      }),
      out: pageOf(DataRecord.pick({ device_id: true, topic: true, timestamp: true })),
      errors: { cursor_invalid },
    },
    /** How many topics `readLatest` has in all, counted up to {@link maxLatestLimit}. */
    countTopics: {
      ...idempotent,
      in: readByDevice,
      out: z.object({ count: z.int().min(0).max(maxLatestLimit) }),
      errors: { not_permitted, device_mismatch },
    },
    /**
     * Numbers of one series by spans of time, which are rounded outwards. `every` is what was asked for, or what `auto`
     * became. For a master key, a device key of that device, and a public key whose ACL the caller has asked.
     */
    readSeries: {
      ...idempotent,
      deadlineMs: 10_000,
      in: readByDevice.extend({
        /** Relative to `db/<device_id>/`. */
        topic: SeriesTopic,
        pointer: SeriesPointer,
        from: Timestamp,
        /** Exclusive. */
        until: Timestamp,
        every: Every,
        /** IANA name: days and months begin at its midnight. */
        tz: z.string().max(64).default("UTC"),
        /** Whether spans without numbers are answered, too. */
        fill: z.boolean().default(false),
        /** Spans that begin earlier are left out. */
        not_before: Timestamp.optional(),
      }),
      out: z.object({
        every: z.string(),
        from: Timestamp,
        until: Timestamp,
        /** Whether the last span is not over yet. */
        partial: z.boolean(),
        spans: z.array(SeriesSpan),
      }),
      errors: {
        series_range_invalid: {
          code: "invalid_argument",
          when: "`from`, `until`, `every` and `tz` do not fit together, or have too many points.",
          details: z.array(Violation),
        },
        not_permitted,
        device_mismatch,
      },
    },
    /** The series of a device, by topic and pointer. For a master key, and a device key of that device. */
    listSeries: {
      ...idempotent,
      in: readByDevice,
      out: z.object({ series: z.array(DeviceSeries), left_out: z.int().min(0) }),
      errors: { not_permitted, device_mismatch },
    },
    /**
     * Records after `after` in the order of storing, cut by bytes. `next` is the `after` of the next page; it moves
     * past records that are not wanted.
     */
    followRecords: {
      ...idempotent,
      deadlineMs: 10_000,
      in: z.object({
        /** A `next`; null begins with what is stored from now on, and answers no record. */
        after: z
          .string()
          .regex(/^\d{1,15}$/)
          .nullable(),
        /** Relative to `db/<device id>/`, of any device. */
        topics: z.array(TopicFilter).max(100).optional(),
        device_ids: z.array(DeviceId).max(1_000).optional(),
        limit: z.int().min(1).max(maxRecordLimit).default(maxRecordLimit),
      }),
      out: z.object({
        next: z.string(),
        /** All that was stored before this time has been answered; null while more records follow. */
        caught_up_at: Timestamp.nullable(),
        records: RecordColumns,
      }),
      errors: {
        cursor_invalid: {
          code: "invalid_argument",
          when: "`after` is beyond the last record, as in a store that was restored.",
        },
      },
    },
    /** Refuses the device's messages from now on and deletes its records. */
    purgeDevice: { ...idempotent, deadlineMs: 25_000, in: ofDevice, out: done },
    /** Takes messages of the id again, but only those published after this call. */
    admitDevice: { ...idempotent, in: ofDevice, out: done },
    /** How many messages of devices the broker keeps that are not stored yet. */
    readBacklog,
  },
});

/** Events of `data`. */
export const dataEvents = defineEvents({
  service: "data",
  events: {
    /**
     * Records that were just stored, in order; best effort, and only while a gateway asks for them
     * (`gatewayEvents.records_wanted`).
     */
    stored: defineLiveEvent(z.object({ records: z.array(DataRecord) }), () => "all"),
    /** Messages that cannot be stored. */
    diagnostics: defineLiveEvent(DiagnosisReports, () => "all"),
  },
});
