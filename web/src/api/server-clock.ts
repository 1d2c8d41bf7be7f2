/** Offset of the server's clock to this one, in milliseconds. */
let aheadMs = 0;

/** Tolerated offset, in milliseconds: `Date` has whole seconds, and a response takes time. */
const toleratedMs = 5_000;

/** Compares this clock with the `Date` of a response. */
export function noteServerTime(headers: Headers, now: number = Date.now()): void {
  const ahead = Date.parse(headers.get("Date") ?? "") - now;
  if (!Number.isNaN(ahead)) aheadMs = Math.abs(ahead) > toleratedMs ? ahead : 0;
}

/** The server's time, Unix ms: ages of its timestamps are correct even if this clock is wrong. */
export function serverNow(): number {
  return Date.now() + aheadMs;
}
