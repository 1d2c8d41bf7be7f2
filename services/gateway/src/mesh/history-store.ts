import { historyMinutes, MeshHistory, type MeshMinute } from "@devmesh/contracts/model/mesh-history";
import type { Bus } from "@devmesh/service-kit/bus";
import { readStoredHistory, replaceStoredHistory } from "@devmesh/service-kit/history-stream";

/** The course of the mesh, shared by all gateways: one message of the broker, some 150 KB for a day. */
export interface HistoryStore {
  /** Empty before the first minute; throws `unavailable` without the broker. */
  read(): Promise<MeshHistory>;
  /**
   * Adds a minute, unless another gateway added it before, and drops those that are a day old. Rejects when another
   * gateway adds it at the same time.
   */
  append(minute: MeshMinute): Promise<void>;
}

const minuteMs = 60_000;

export function createHistoryStore(bus: Bus): HistoryStore {
  const read = () => readStoredHistory(bus, "mesh", MeshHistory);
  return {
    read: async () => (await read()).value,
    async append(minute) {
      const { value: history, sequence } = await read();
      const at = Date.parse(minute.at);
      if (history.some((other) => Date.parse(other.at) >= at)) return;
      const recent = history.filter((other) => Date.parse(other.at) > at - historyMinutes * minuteMs);
      await replaceStoredHistory(bus, "mesh", { value: [...recent, minute], sequence });
    },
  };
}
