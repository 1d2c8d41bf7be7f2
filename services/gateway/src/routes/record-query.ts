import type { NamedQuery } from "@devmesh/contracts/model/acl";
import { maxRecordLimit } from "@devmesh/contracts/model/data-record";
import { defaultRecordLimit } from "@devmesh/contracts/rest/stored-data";
import { invalidRequest } from "../http/gateway-errors.ts";

/** How the holder of a public key narrows a named query. */
export interface Narrowing {
  readonly limit?: number | undefined;
  /** A time or a duration, as in the query itself. */
  readonly since?: string | undefined;
}

/** A named query with the caller's wishes worked in. */
export interface NarrowedQuery {
  readonly topic: string;
  readonly order: "asc" | "desc";
  readonly limit: number;
  readonly since: string | undefined;
}

/**
 * The vendor's query, narrowed and never widened: the smaller limit, the later `since` (api.md, Device public key and
 * the ACL). Throws `invalid_request` for a limit over 5,000 where the query has none of its own.
 */
export function narrowQuery(query: NamedQuery, by: Narrowing, now: Date): NarrowedQuery {
  if (query.limit === undefined) assertRecordLimit(by.limit);
  const most = query.limit ?? maxRecordLimit;
  const start = (since: string | undefined) => (since === undefined ? undefined : startOf(since, now));
  return {
    topic: query.topic,
    order: query.order ?? "asc",
    limit: Math.min(by.limit ?? query.limit ?? defaultRecordLimit, most),
    since: later(start(query.since), start(by.since)),
  };
}

/** Throws `invalid_request` for more records than one answer holds. */
export function assertRecordLimit(limit: number | undefined): void {
  if (limit === undefined || limit <= maxRecordLimit) return;
  throw invalidRequest([{ pointer: "/query/limit", detail: `must be at most ${maxRecordLimit}` }]);
}

function later(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Date.parse(one) >= Date.parse(other) ? one : other;
}

/** The time that `since` means: an RFC 3339 time itself, an ISO 8601 duration back from `now`. */
export function startOf(since: string, now: Date): string {
  if (!since.startsWith("P")) return new Date(since).toISOString();
  // A duration may be longer than time: the first moment of Unix time is early enough for any record.
  return new Date(Math.max(0, timeBefore(now, since))).toISOString();
}

const duration =
  /^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** Unix ms of the moment a duration before `now`: first back along the calendar of UTC, then by the clock. */
function timeBefore(now: Date, text: string): number {
  const amounts = duration.exec(text)?.slice(1) ?? [];
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = amounts.map(
    (amount) => Number(amount ?? 0),
  );
  const ms = ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
  return monthsBefore(now, years * 12 + months) - ms;
}

/** Unix ms of the same day and time some months before; of that month's last day where it has no such day. */
function monthsBefore(now: Date, months: number): number {
  const month = now.getUTCFullYear() * 12 + now.getUTCMonth() - months;
  if (month < 1970 * 12) return 0;
  const [year, monthOfYear] = [Math.floor(month / 12), month % 12];
  const lastDay = new Date(Date.UTC(year, monthOfYear + 1, 0)).getUTCDate();
  const start = new Date(now);
  start.setUTCFullYear(year, monthOfYear, Math.min(now.getUTCDate(), lastDay));
  return start.getTime();
}
