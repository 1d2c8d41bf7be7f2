import { z } from "zod";

/** RFC 3339, UTC, milliseconds: the form of every time in an answer (api.md, Conventions). */
export const Timestamp = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: "date-time", example: "2026-01-31T12:00:00.000Z" });

/** A time as a caller may write it: RFC 3339 with any offset; parsed to the canonical form of {@link Timestamp}. */
export const TimestampInput = z
  .string()
  .refine(
    (text) =>
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(text) &&
      !Number.isNaN(Date.parse(text)),
    "must be an RFC 3339 time, for example 2026-01-31T12:00:00Z",
  )
  .transform((text) => new Date(text).toISOString())
  .meta({ type: "string", format: "date-time" });
