import { isAccountFrame } from "@devmesh/contracts/event-frames";
import type { Frame } from "./frame.ts";
import type { BufferedEvent } from "./replay-buffer.ts";

/** Selects the frames that one kind of listener may receive, in order. Never rejects. */
export interface View {
  framesOf(events: readonly BufferedEvent[]): readonly Frame[] | Promise<readonly Frame[]>;
  recordsOf(records: readonly Frame[]): readonly Frame[] | Promise<readonly Frame[]>;
}

/** All devices, and the account where it is asked for; or one device. */
export function masterView({
  device,
  account,
}: {
  readonly device: string | undefined;
  readonly account: boolean;
}): View {
  const mayAccess = (frame: Frame) =>
    isAccountFrame(frame.name) ? account : device === undefined || frame.id === device;
  return {
    framesOf: (events) =>
      events.flatMap((event) => {
        // Events about other devices are not even parsed.
        const frame = device === undefined || event.about === device ? event.frame() : null;
        return frame === null || !mayAccess(frame) ? [] : [frame];
      }),
    recordsOf: (records) => (device === undefined ? records : records.filter(mayAccess)),
  };
}

/** Another view with the keys in its frames redacted. */
export function redactedView(view: View): View {
  const redact = (frames: readonly Frame[]) => frames.map((frame) => frame.redacted);
  const shown = (frames: readonly Frame[] | Promise<readonly Frame[]>) =>
    frames instanceof Promise ? frames.then(redact) : redact(frames);
  return {
    framesOf: (events) => shown(view.framesOf(events)),
    recordsOf: (records) => shown(view.recordsOf(records)),
  };
}
