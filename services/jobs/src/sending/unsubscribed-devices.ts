import type { Clock } from "@devmesh/service-kit/clock";

/** When a device that connected is tried, in milliseconds after that: it subscribes after it has connected. */
const triesAfterMs = [300, 1_000, 2_000, 4_000, 8_000];

/** Pauses of the sweep for a device that does not subscribe, in milliseconds, doubled from the first. */
const firstPauseMs = 30_000;
const longestPauseMs = 600_000;

interface Tries {
  readonly sinceMs: number;
  tried: number;
  /** The sweep leaves it alone until then. */
  quietUntilMs: number;
  cancel: () => void;
}

/**
 * When devices are tried that may not have subscribed to their calls: soon after they connect, later by the sweep,
 * less and less often. One entry for each device that is tried and does not listen.
 */
export function createUnsubscribedDevices(clock: Clock, wake: (deviceId: string) => void) {
  const devices = new Map<string, Tries>();

  function schedule(id: string, tries: Tries): void {
    const afterMs = triesAfterMs[tries.tried];
    const sinceMs = clock.monotonicMs() - tries.sinceMs;
    if (afterMs === undefined) {
      const pauseMs = firstPauseMs * 2 ** (tries.tried - triesAfterMs.length);
      tries.quietUntilMs = clock.monotonicMs() + Math.min(pauseMs, longestPauseMs);
    } else tries.cancel = clock.schedule(Math.max(0, afterMs - sinceMs), () => wake(id));
    tries.tried++;
  }

  function begin(id: string, tried: number): void {
    devices.get(id)?.cancel();
    const tries: Tries = {
      sinceMs: clock.monotonicMs(),
      tried,
      quietUntilMs: 0,
      cancel: () => undefined,
    };
    devices.set(id, tries);
    schedule(id, tries);
  }

  return {
    /** It has connected: it is tried soon. */
    connected: (id: string): void => begin(id, 0),
    /** A try found nobody: another one follows. */
    nobodyListens(id: string): void {
      const tries = devices.get(id);
      if (tries === undefined) begin(id, 1);
      else schedule(id, tries);
    },
    /** It listens, or nothing waits for it. */
    forget(id: string): void {
      devices.get(id)?.cancel();
      devices.delete(id);
    },
    /** Whether the sweep may try it. */
    mayTry(id: string): boolean {
      const tries = devices.get(id);
      return (
        tries === undefined ||
        (tries.tried > triesAfterMs.length && clock.monotonicMs() >= tries.quietUntilMs)
      );
    },
    /** Ends all timers. */
    stop(): void {
      for (const { cancel } of devices.values()) cancel();
      devices.clear();
    },
  };
}
