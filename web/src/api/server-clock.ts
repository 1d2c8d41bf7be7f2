/** How far the server's clock is ahead of this one, in milliseconds; below 0 it is behind. */
let aheadMs = 0;

/** What is no difference, in milliseconds: `Date` has whole seconds, and an answer is on its way for a while. */
const toleratedMs = 5_000;

/** Compares this clock with the server's, which an answer's `Date` tells. */
export function noteServerTime(headers: Headers, now: number = Date.now()): void {
  const ahead = Date.parse(headers.get("Date") ?? "") - now;
  if (!Number.isNaN(ahead)) aheadMs = Math.abs(ahead) > toleratedMs ? ahead : 0;
}

/** The time on the server, Unix ms: ages of what the server has stamped are told by it, however wrong this clock is. */
export function serverNow(): number {
  return Date.now() + aheadMs;
}
