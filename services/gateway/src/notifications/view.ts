import type { Frame } from "./frame.ts";
import type { RecentEvent } from "./recent-events.ts";

/** What one kind of listener sees of all that happens. */
export interface View {
  /** The frames of some events, in their order. Never rejects. */
  framesOf(events: readonly RecentEvent[]): readonly Frame[] | Promise<readonly Frame[]>;
  /** Those of the frames of records that may be seen. Never rejects. */
  recordsOf(records: readonly Frame[]): readonly Frame[] | Promise<readonly Frame[]>;
}

/** Names of frames that tell of the account rather than of devices. */
const accountNames: ReadonlySet<string> = new Set(["keys", "customers"]);

/** All devices, and the account where it is asked for. */
export function masterView({ account }: { readonly account: boolean }): View {
  return {
    framesOf: (events) =>
      events.flatMap((event) => {
        const frame = event.frame();
        return frame === null || (accountNames.has(frame.name) && !account) ? [] : [frame];
      }),
    recordsOf: (records) => records,
  };
}
