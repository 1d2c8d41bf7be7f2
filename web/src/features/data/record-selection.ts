import { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Notification } from "@devmesh/contracts/model/notification";

/** Which records a list, a chart or an export holds. */
export interface RecordChoice {
  /** Case-sensitive substring of topic or payload; empty for all. */
  readonly filter: string;
  /** Id of a device; empty for all. */
  readonly device: string;
  /** ISO 8601, inclusive; empty for no bound. */
  readonly since: string;
  /** ISO 8601, exclusive; empty for no bound. */
  readonly until: string;
}

/** Whether a record belongs to a selection, as the server would say (api.md, Stored data). */
export function selects({ filter, device, since, until }: RecordChoice, record: DataRecord): boolean {
  const at = Date.parse(record.timestamp);
  if (device !== "" && record.device_id !== device) return false;
  if (since !== "" && at < Date.parse(since)) return false;
  if (until !== "" && at >= Date.parse(until)) return false;
  if (filter === "" || record.topic.includes(filter)) return true;
  return record.encoding === undefined && record.message.includes(filter);
}

/** The selection as `GET /data` takes it. */
export function queryOf({ filter, device, since, until }: RecordChoice) {
  return {
    ...(filter !== "" && { filter }),
    ...(device !== "" && { device_id: device }),
    ...(since !== "" && { since }),
    ...(until !== "" && { until }),
  };
}

/** The records in frames of the stream. */
export function recordsIn(frames: readonly Notification[]): DataRecord[] {
  return frames.flatMap(({ name, data }) => {
    const record = name === "data" ? DataRecord.safeParse(data) : null;
    return record?.success ? [record.data] : [];
  });
}
