/** Names, types, numbers and times of a record, and its entries in the indexes without topic and device, in bytes. */
const fixedWeight = 260;

/**
 * What a record takes up, indexes included, before anything is compressed: what it holds, and topic and device once
 * more for their indexes; in bytes.
 */
export function weightOf(deviceId: string, topic: string, payloadBytes: number): number {
  return fixedWeight + payloadBytes + 2 * (Buffer.byteLength(topic) + deviceId.length);
}

/** {@link weightOf} a row of SQLite's table `records`. */
export const weightInSql = `(${fixedWeight} + length(payload) + 2 * (octet_length(topic) + length(device_id)))`;
