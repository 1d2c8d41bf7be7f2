import type { Outcome } from "../requests/sender.ts";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Waits before further attempts of a delivery; the last one is repeated. In milliseconds. */
const waits = [5 * second, 30 * second, 2 * minute, 10 * minute, 30 * minute, hour];
/** How long a delivery is tried, counted from its storing. */
export const deliveryLifeMs = 24 * hour;
/** Attempts of a delivery that the receiver refuses. */
const refusedAttempts = 8;
/** Client errors that are worth another attempt. */
const passingErrors: ReadonlySet<number> = new Set([408, 425, 429]);
/** Most that a receiver may ask to wait for. */
const maxPauseMs = hour;

/** Failures in a row after which a webhook is tried with one event at a time, and the waits between these. */
const failuresBeforeProbing = 10;
const probeWaits = [5 * second, 30 * second, minute];

/** How long a webhook may fail, and how often it must have been tried, before it is disabled. */
export const failingLimits = { ms: 3 * 24 * hour, attempts: 20 } as const;

/** What follows an attempt. */
export type NextStep =
  | { readonly kind: "delivered" | "gone" | "dead" }
  | { readonly kind: "retry"; readonly delayMs: number };

/** One attempt at a delivery. `number` is 1 at the first; `random` is within 0 and 1. */
export interface Attempted {
  readonly outcome: Outcome;
  readonly number: number;
  readonly waitedMs: number;
  readonly random: number;
}

/** What follows an attempt (api.md, Webhooks). */
export function nextStep({ outcome, number, waitedMs, random }: Attempted): NextStep {
  const { status, error } = outcome;
  if (error === null) return { kind: "delivered" };
  if (status === 410) return { kind: "gone" };
  const isRefused = status !== null && status >= 400 && status < 500 && !passingErrors.has(status);
  if (waitedMs >= deliveryLifeMs || (isRefused && number >= refusedAttempts)) return { kind: "dead" };
  const wait = waits[Math.min(number, waits.length) - 1] ?? hour;
  return { kind: "retry", delayMs: Math.max(Math.round(wait * (0.8 + 0.4 * random)), pauseOf(outcome) ?? 0) };
}

/** For how long a receiver asks to be left alone; null where it does not. In milliseconds. */
export function pauseOf({ status, retryAfterMs }: Outcome): number | null {
  if ((status !== 429 && status !== 503) || retryAfterMs === null) return null;
  return Math.min(retryAfterMs, maxPauseMs);
}

/** The wait before a webhook is tried again, by the number of failures in a row; 0 while there are few. */
export function probeWait(failures: number): number {
  if (failures < failuresBeforeProbing) return 0;
  return probeWaits[Math.min(failures - failuresBeforeProbing, probeWaits.length - 1)] ?? minute;
}
