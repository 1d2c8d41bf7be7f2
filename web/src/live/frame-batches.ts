import type { Notification } from "@devmesh/contracts/model/notification";

/**
 * How long frames are gathered before they are shown, in milliseconds: a large fleet sends more than anyone can read.
 */
const gatherMs = 200;

/** Gathers frames into batches: one update of the page for each. */
export function gatherFrames(deliver: (frames: readonly Notification[]) => void): {
  readonly push: (frame: Notification) => void;
  /** Drops the gathered frames. */
  readonly stop: () => void;
} {
  let waiting: Notification[] = [];
  let timer: ReturnType<typeof setTimeout> | null = null;
  return {
    push(frame) {
      waiting.push(frame);
      timer ??= setTimeout(() => {
        const frames = waiting;
        waiting = [];
        timer = null;
        deliver(frames);
      }, gatherMs);
    },
    stop() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      waiting = [];
    },
  };
}
