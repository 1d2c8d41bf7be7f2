import type { Notification } from "@devmesh/contracts/model/notification";

/**
 * How long frames are gathered before they are shown, in milliseconds: a large fleet sends more than anyone can read.
 */
const gatherMs = 200;

/** Takes frames, and delivers them in batches, one update of the page for each, until `signal` fires. */
export function gatherFrames(
  deliver: (frames: readonly Notification[]) => void,
  signal: AbortSignal,
): (frame: Notification) => void {
  let waiting: Notification[] = [];
  return (frame) => {
    waiting.push(frame);
    if (waiting.length > 1) return;
    setTimeout(() => {
      const frames = waiting;
      waiting = [];
      if (!signal.aborted) deliver(frames);
    }, gatherMs);
  };
}
