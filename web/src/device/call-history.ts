import type { ApiClient } from "../api/api-client.ts";
import type { CallOutcome } from "./call-outcome.ts";

/** A call that was made, as it was made. */
export interface PastCall {
  readonly func: string;
  /** The parameters as they were typed; empty for none. */
  readonly params: string;
  /** In milliseconds. */
  readonly timeout: number;
  /** Unix ms. */
  readonly startedAt: number;
  /** From the click to the answer, in milliseconds. */
  readonly tookMs: number;
  readonly outcome: CallOutcome;
}

/** Most calls that are kept of a device. */
export const maxPastCalls = 50;

/** By session, as parameters may be secret: who signs in next sees none of them. */
const sessions = new WeakMap<ApiClient, Map<string, readonly PastCall[]>>();

/** The calls of a device in this session, newest first. */
export function pastCalls(session: ApiClient, deviceId: string): readonly PastCall[] {
  return sessions.get(session)?.get(deviceId) ?? [];
}

/** Keeps a call; answers all that are kept of the device. */
export function keepCall(session: ApiClient, deviceId: string, call: PastCall): readonly PastCall[] {
  const devices = sessions.get(session) ?? new Map<string, readonly PastCall[]>();
  sessions.set(session, devices);
  const calls = [call, ...(devices.get(deviceId) ?? [])].slice(0, maxPastCalls);
  devices.set(deviceId, calls);
  return calls;
}

/** Forgets the calls of a device. */
export function forgetCalls(session: ApiClient, deviceId: string): void {
  sessions.get(session)?.delete(deviceId);
}
