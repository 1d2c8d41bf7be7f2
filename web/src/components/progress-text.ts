import { timeSpan } from "./time-in-words.ts";

/** Share from which on the pace says something about the end. */
const leastShare = 0.01;

/** How long something takes that has come to a share of 0 to 1, in milliseconds; null while nobody can know. */
export function remainingMs(elapsedMs: number, share: number): number | null {
  return share < leastShare || share >= 1 ? null : (elapsedMs / share) * (1 - share);
}

/** When something will end: "about 12 min left", or nothing while nobody can know. */
export function remainingText(ms: number | null): string {
  if (ms === null) return "";
  return ms < 5_000 ? "a few seconds left" : `about ${timeSpan(ms)} left`;
}
