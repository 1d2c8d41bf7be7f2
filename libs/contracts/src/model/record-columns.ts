import { z } from "zod";
import type { DataRecord } from "./data-record.ts";
import { recordRoot } from "./device-id.ts";

/** Records of many devices, by column: to check, copy and parse them costs a third of what objects do. */
export const RecordColumns = z
  .object({
    ids: z.array(z.int()),
    /** When the broker took each message; Unix milliseconds. */
    times: z.array(z.int()),
    topics: z.array(z.string()),
    messages: z.array(z.string()),
    /** Ids of the records whose message is base64. */
    base64: z.array(z.int()),
  })
  .refine(
    ({ ids, times, topics, messages }) =>
      [times, topics, messages].every(({ length }) => length === ids.length),
    "columns must have one length",
  );
export type RecordColumns = z.infer<typeof RecordColumns>;

export function emptyColumns(): RecordColumns {
  return { ids: [], times: [], topics: [], messages: [], base64: [] };
}

/** These records by column. */
export function columnsOf(records: readonly DataRecord[]): RecordColumns {
  return {
    ids: records.map(({ id }) => id),
    times: records.map(({ timestamp }) => Date.parse(timestamp)),
    topics: records.map(({ topic }) => topic),
    messages: records.map(({ message }) => message),
    base64: records.filter(({ encoding }) => encoding !== undefined).map(({ id }) => id),
  };
}

/** The records of columns, in their order. */
export function recordsOf({ ids, times, topics, messages, base64 }: RecordColumns): DataRecord[] {
  const encoded = new Set(base64);
  return ids.map((id, at) => {
    const topic = topics[at] ?? "";
    const timestamp = new Date(times[at] ?? 0).toISOString();
    const record = { id, timestamp, device_id: deviceOfRecord(topic), topic, message: messages[at] ?? "" };
    return encoded.has(id) ? { ...record, encoding: "base64" } : record;
  });
}

/** The device of a record's topic, `db/<device id>/…`. */
export function deviceOfRecord(topic: string): string {
  return topic.slice(recordRoot.length + 1, topic.indexOf("/", recordRoot.length + 1));
}
