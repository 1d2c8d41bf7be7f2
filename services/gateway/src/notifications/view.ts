import type { Frame } from "./frame.ts";
import type { RecentEvent } from "./replay-buffer.ts";

/** What one kind of listener sees of all that happens. */
export interface View {
  /** The frames of some events, in their order. Never rejects. */
  framesOf(events: readonly RecentEvent[]): readonly Frame[] | Promise<readonly Frame[]>;
  /** Those of the frames of records that may be seen. Never rejects. */
  recordsOf(records: readonly Frame[]): readonly Frame[] | Promise<readonly Frame[]>;
}

/** Names of frames that tell of the account rather than of devices. */
const accountNames: ReadonlySet<string> = new Set(["keys", "customers"]);

/** All devices, and the account where it is asked for; or one device. */
export function masterView({
  device,
  account,
}: {
  readonly device: string | undefined;
  readonly account: boolean;
}): View {
  const concerns = (frame: Frame) =>
    accountNames.has(frame.name) ? account : device === undefined || frame.id === device;
  return {
    framesOf: (events) =>
      events.flatMap((event) => {
        // What is about others is not even parsed.
        const frame = device === undefined || event.about === device ? event.frame() : null;
        return frame === null || !concerns(frame) ? [] : [frame];
      }),
    recordsOf: (records) => (device === undefined ? records : records.filter(concerns)),
  };
}
