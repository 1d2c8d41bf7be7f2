import type { Notification } from "@devmesh/contracts/model/notification";

/** One line of a device's log. */
export interface LogEntry {
  /** Ascends within the log. */
  readonly position: number;
  readonly frame: Notification;
}

/** Frames of a device since its log is open. */
export interface EventLog {
  /** Newest first. */
  readonly entries: readonly LogEntry[];
  /** Number of entries so far, including dropped ones. */
  readonly total: number;
}

/** Maximum of entries; the oldest are dropped. */
export const maxLogEntries = 500;

export const emptyLog: EventLog = { entries: [], total: 0 };

/** The log with frames of the device added, oldest first as they came, and those of `gap`, which concern all. */
export function withFrames(log: EventLog, deviceId: string, frames: readonly Notification[]): EventLog {
  const added = frames
    .filter(({ id, name }) => id === deviceId || name === "gap")
    .map((frame, at) => ({ position: log.total + at, frame }));
  if (added.length === 0) return log;
  return {
    entries: [...added.reverse(), ...log.entries].slice(0, maxLogEntries),
    total: log.total + added.length,
  };
}
