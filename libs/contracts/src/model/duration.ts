import { z } from "zod";
import { TimestampInput } from "./time.ts";

const duration = /^P(?=\d|T\d)(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$/;

/** An ISO 8601 duration, counted back from now in UTC; only seconds take a fraction. */
export const Duration = z
  .string()
  // A union reports the error of the one member that goes on.
  .regex(duration, { error: "must be an ISO 8601 duration such as PT24H", abort: true })
  .max(64);

/** Since when, as a caller may write it. {@link startOf} says when that was. */
export const Since = z.union([Duration, TimestampInput], {
  error: "must be an RFC 3339 time, or an ISO 8601 duration back from now such as PT24H",
});

/** The {@link Timestamp} that `since` means: an RFC 3339 time itself, an ISO 8601 duration back from `now`. */
export function startOf(since: string, now: Date): string {
  if (!since.startsWith("P")) return new Date(since).toISOString();
  const [date = "", time = ""] = since.split("T");
  const months = amount(date, "Y") * 12 + amount(date, "M");
  const days = amount(date, "W") * 7 + amount(date, "D");
  const minutes = amount(time, "H") * 60 + amount(time, "M");
  const ms = ((days * 24 * 60 + minutes) * 60 + amount(time, "S")) * 1000;
  // A duration may reach beyond the range of a Date; nothing is older than Unix time.
  return new Date(Math.max(0, monthsBefore(now, months) - ms)).toISOString();
}

function amount(durationPart: string, unit: string): number {
  return Number(new RegExp(`([\\d.]+)${unit}`).exec(durationPart)?.[1] ?? 0);
}

/** Unix ms of the same day and time some months before, or of that month's last day where it has no such day. */
function monthsBefore(now: Date, months: number): number {
  const month = now.getUTCFullYear() * 12 + now.getUTCMonth() - months;
  if (month < 1970 * 12) return 0;
  const [year, monthOfYear] = [Math.floor(month / 12), month % 12];
  const lastDay = new Date(Date.UTC(year, monthOfYear + 1, 0)).getUTCDate();
  return new Date(now).setUTCFullYear(year, monthOfYear, Math.min(now.getUTCDate(), lastDay));
}

/** Milliseconds of an ISO 8601 duration; years and months as they end now. */
export function lengthOf(duration: string, now = new Date()): number {
  return now.getTime() - Date.parse(startOf(duration, now));
}

/** A {@link Duration} between two others. */
export function durationBetween(shortest: string, longest: string) {
  return Duration.refine((text) => {
    // zod goes on after the form was refused.
    if (!duration.test(text)) return true;
    const ms = lengthOf(text);
    return ms >= lengthOf(shortest) && ms <= lengthOf(longest);
  }, `must be from ${shortest} to ${longest}`);
}
