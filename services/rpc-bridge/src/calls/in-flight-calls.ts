import { randomInt } from "node:crypto";
import type { Clock } from "@devmesh/service-kit/clock";
import type { DeviceReply } from "./frame.ts";

/** How a call ended. */
export type CallOutcome =
  | DeviceReply
  | { readonly kind: "timeout" }
  | { readonly kind: "offline" }
  | { readonly kind: "deleted" }
  /** This process stops. */
  | { readonly kind: "restarting" };

/** A call that waits for its answer. */
interface InFlightCall {
  /** A random integer of 1 to 2³¹−1 that no other call in flight has. */
  readonly id: number;
  /** Settles once, never rejects. */
  readonly outcome: Promise<CallOutcome>;
  /** Ends the call as timed out unless it has ended. */
  abandon(): void;
}

/** The calls in flight of this process; in memory only (architecture.md, Services). */
export type InFlightCalls = ReturnType<typeof createInFlightCalls>;

export interface InFlightCallsOptions {
  readonly clock: Clock;
  /** Most calls in flight; bounds the memory. */
  readonly maxInFlight: number;
  /** Default: from the system's CSPRNG. */
  readonly randomId?: () => number;
}

interface WaitingCall {
  readonly id: number;
  readonly deviceId: string;
  readonly settle: (outcome: CallOutcome) => void;
  readonly cancelTimer: () => void;
}

export function createInFlightCalls({ clock, maxInFlight, randomId = random31BitId }: InFlightCallsOptions) {
  const byId = new Map<number, WaitingCall>();
  const byDevice = new Map<string, Set<WaitingCall>>();
  let stopping = false;

  function unusedId(): number {
    for (;;) {
      const id = randomId();
      if (!byId.has(id)) return id;
    }
  }

  function add(call: WaitingCall): void {
    byId.set(call.id, call);
    const ofDevice = byDevice.get(call.deviceId);
    if (ofDevice === undefined) byDevice.set(call.deviceId, new Set([call]));
    else ofDevice.add(call);
  }

  function remove(call: WaitingCall): void {
    call.cancelTimer();
    byId.delete(call.id);
    const ofDevice = byDevice.get(call.deviceId);
    ofDevice?.delete(call);
    if (ofDevice?.size === 0) byDevice.delete(call.deviceId);
  }

  function end(call: WaitingCall, outcome: CallOutcome): void {
    remove(call);
    call.settle(outcome);
  }

  return {
    /** Starts the timer of a call; null when too many are in flight. */
    open(deviceId: string, timeoutMs: number): InFlightCall | null {
      const id = unusedId();
      if (stopping) return { id, outcome: Promise.resolve({ kind: "restarting" }), abandon: () => undefined };
      if (byId.size >= maxInFlight) return null;
      const { promise, resolve } = Promise.withResolvers<CallOutcome>();
      const call: WaitingCall = {
        id,
        deviceId,
        settle: resolve,
        cancelTimer: clock.schedule(timeoutMs, () => end(call, { kind: "timeout" })),
      };
      add(call);
      return { id, outcome: promise, abandon: () => end(call, { kind: "timeout" }) };
    },
    /**
     * Settles a call. False when that device owes no such reply: it is late or repeated, or another replica or device
     * was called.
     */
    settle(deviceId: string, id: number, reply: DeviceReply): boolean {
      const call = byId.get(id);
      if (call === undefined || call.deviceId !== deviceId) return false;
      end(call, reply);
      return true;
    },
    /** Whether any call waits for the device. */
    isWaitingFor: (deviceId: string): boolean => byDevice.has(deviceId),
    /** Ends the calls of a device that is gone. */
    endOf(deviceId: string, why: "offline" | "deleted"): void {
      for (const call of [...(byDevice.get(deviceId) ?? [])]) end(call, { kind: why });
    },
    /** Ends all calls, and each further one at once, because this process stops. */
    endAll(): void {
      stopping = true;
      for (const call of [...byId.values()]) end(call, { kind: "restarting" });
    },
    get size(): number {
      return byId.size;
    },
  };
}

function random31BitId(): number {
  return randomInt(1, 2 ** 31);
}
