import { type MeshHistory, MeshMinute } from "@devmesh/contracts/model/mesh-history";
import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { createHistoryStream } from "@devmesh/service-kit/events/history-stream";
import type { Logger } from "@devmesh/service-kit/logger";
import { minuteBetween, withKnownQueues } from "./mesh-minute.ts";

const minuteMs = 60_000;

/** The course of the mesh, shared by all gateways: a message a minute, which the broker keeps for a day. */
export interface MeshHistoryStore {
  /** Empty before the first minute; throws `unavailable` without the broker. */
  read(): Promise<MeshHistory>;
  /** Adds a minute, unless another gateway added it before; rejects without the broker. */
  append(minute: MeshMinute): Promise<void>;
}

export function createMeshHistory(bus: Bus): MeshHistoryStore {
  const stream = createHistoryStream(bus, "mesh");
  return {
    async read() {
      const minutes = (await stream.read()).map((value) => MeshMinute.safeParse(value).data);
      // A gateway whose clock is minutes late adds what the broker no longer takes for the same.
      const byTime = new Map(minutes.flatMap((minute) => (minute ? [[minute.at, minute]] : [])));
      return [...byTime.values()].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
    },
    append: (minute) => stream.write({ subject: "history.mesh", value: minute, id: minute.at }),
  };
}

export interface KeepHistoryOptions {
  readonly store: Pick<MeshHistoryStore, "append">;
  /** Reads the mesh; rejects without the broker. */
  readonly read: () => Promise<MeshState>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Adds each full minute of the clock to the history until `signal` aborts. A failure leaves that minute out. */
export async function keepHistory({ store, read, clock, log, signal }: KeepHistoryOptions): Promise<void> {
  let before: MeshState | null = null;
  while (!signal.aborted) {
    const at = new Date(Math.floor(clock.now().getTime() / minuteMs) * minuteMs + minuteMs);
    try {
      await clock.sleep(at.getTime() - clock.now().getTime(), signal);
      const now = withKnownQueues(before, await read());
      const minute = minuteBetween(before, now, at);
      before = now;
      await store.append(minute);
    } catch (error) {
      if (!signal.aborted) log.debug({ err: error }, "a minute is missing in the history of the mesh");
    }
  }
}
