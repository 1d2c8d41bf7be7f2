import { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Notification } from "@devmesh/contracts/model/notification";

/** The records in frames of the stream. */
export function recordsIn(frames: readonly Notification[]): DataRecord[] {
  return frames.flatMap(({ name, data }) => {
    const record = name === "data" ? DataRecord.safeParse(data) : null;
    return record?.success ? [record.data] : [];
  });
}
