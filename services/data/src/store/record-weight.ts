/** A record and its index entries without payload, topic and device, in bytes. */
const fixedWeight = 260;

/** The size of a record with indexes, uncompressed, in bytes: topic and device count twice for their indexes. */
export function weightOf(deviceId: string, topic: string, payloadBytes: number): number {
  return fixedWeight + payloadBytes + 2 * (Buffer.byteLength(topic) + deviceId.length);
}

/** {@link weightOf} a row of SQLite's table `records`. */
export const weightInSql = `(${fixedWeight} + length(payload) + 2 * (octet_length(topic) + length(device_id)))`;
