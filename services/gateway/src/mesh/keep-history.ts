import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import type { HistoryStore } from "./history-store.ts";
import { minuteBetween } from "./mesh-minute.ts";

export interface KeepHistoryOptions {
  readonly store: Pick<HistoryStore, "append">;
  /** Reads the mesh; rejects without the broker. */
  readonly read: () => Promise<MeshState>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const minuteMs = 60_000;

/** Adds each full minute of the clock to the history until `signal` aborts. A failure leaves that minute out. */
export async function keepHistory({ store, read, clock, log, signal }: KeepHistoryOptions): Promise<void> {
  let before: MeshState | null = null;
  while (!signal.aborted) {
    const at = new Date(Math.floor(clock.now().getTime() / minuteMs) * minuteMs + minuteMs);
    try {
      await clock.sleep(at.getTime() - clock.now().getTime(), signal);
      const now: MeshState = await read();
      const minute = minuteBetween(before, now, at);
      before = now;
      await store.append(minute);
    } catch (error) {
      if (!signal.aborted) log.debug({ err: error }, "a minute is missing in the history of the mesh");
    }
  }
}
