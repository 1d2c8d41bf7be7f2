import { z } from "zod";

/** RFC 3339, UTC, milliseconds: the form of every time in an answer (api.md, Conventions). */
export const Timestamp = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: "date-time", example: "2026-01-31T12:00:00.000Z" });

const rfc3339 = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):\d\d)$/i;

/** Whether a text is an RFC 3339 time that exists, and that UTC can write with four digits of a year. */
function isTime(text: string): boolean {
  const date = rfc3339.exec(text)?.[1];
  if (date === undefined) return false;
  // `Date.parse` takes 30 February for 2 March.
  const day = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(day) || !new Date(day).toISOString().startsWith(date)) return false;
  const time = Date.parse(text);
  return !Number.isNaN(time) && /^\d{4}-/.test(new Date(time).toISOString());
}

/** A time as a caller may write it: RFC 3339 with any offset; parsed to the canonical form of {@link Timestamp}. */
export const TimestampInput = z
  .string()
  .refine(isTime, "must be an RFC 3339 time, for example 2026-01-31T12:00:00Z")
  .transform((text) => new Date(text).toISOString())
  .meta({ type: "string", format: "date-time" });
