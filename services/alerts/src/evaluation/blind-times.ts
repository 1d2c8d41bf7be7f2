import type { Progress } from "../store/alert-store.ts";

type BlindTime = Progress["blind"][number];

/** Blind times that are kept; older ones are dropped. */
const maxBlindTimes = 1_000;

/** A longer time without a round that succeeded is one in which the mesh could not see, in milliseconds. */
export const blindAfterMs = 15_000;

/** Whether the mesh has not seen for a while. */
export function isBlindAt(now: number, { watched_at }: Progress): boolean {
  return now - watched_at > blindAfterMs;
}

/** The blind times of a progress, with the one that lasts until `now`, if there is one. */
export function blindTimesAt(now: number, progress: Progress): readonly BlindTime[] {
  const { watched_at, blind } = progress;
  return isBlindAt(now, progress) ? withBlindTime(blind, [watched_at, now]) : blind;
}

/** Blind times with another one, joined with those that it touches. */
export function withBlindTime(times: readonly BlindTime[], [from, to]: BlindTime): BlindTime[] {
  if (to <= from) return [...times];
  const apart = times.filter(([begin, end]) => end < from || begin > to);
  const joined = times.filter(([begin, end]) => !(end < from || begin > to));
  const begin = Math.min(from, ...joined.map(([at]) => at));
  const end = Math.max(to, ...joined.map(([, at]) => at));
  return [...apart, [begin, end] as const].sort(([a], [b]) => a - b).slice(-maxBlindTimes);
}

/** When so much time has passed since `from` in which the mesh could see; all in milliseconds. */
export function endOfSight(from: number, seenMs: number, times: readonly BlindTime[]): number {
  let end = from + seenMs;
  for (const [begin, until] of times) {
    if (begin >= end) break;
    if (until > from) end += until - Math.max(begin, from);
  }
  return end;
}

/** How far back from `now` one must look to find so much time in which the mesh could see; all in milliseconds. */
export function reachBack(seenMs: number, times: readonly BlindTime[], now: number): number {
  let begin = now - seenMs;
  for (const [from, to] of times.toReversed()) {
    if (to <= begin) break;
    begin -= Math.min(to, now) - Math.min(from, now);
  }
  return now - begin;
}
