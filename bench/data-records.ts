import type { DataMessage } from "@devmesh/data/store/data-store";

/** Telemetry of 500 devices, three topics each, about 120 bytes of JSON. */
function telemetry(sequence: number): DataMessage {
  const deviceId = `pump-${sequence % 500}`;
  const payload = JSON.stringify({
    temperature: (20 + Math.sin(sequence) * 10).toFixed(3),
    humidity: 40 + ((sequence * 7919) % 4000) / 100,
    seq: sequence,
    state: ["ok", "warn", "idle"][sequence % 3],
    mac: ((sequence * 2654435761) >>> 0).toString(16),
  });
  return {
    delivery: { streamCreated: "2026-01-01T00:00:00Z", sequence },
    timestamp: 1_790_000_000_000 + sequence,
    deviceId,
    topic: `db/${deviceId}/telemetry/${sequence % 3}`,
    payload: Buffer.from(payload),
    encoding: "text",
  };
}

/** The messages of one batch. */
export function batchOf(first: number, size: number): DataMessage[] {
  return Array.from({ length: size }, (_, at) => telemetry(first + at));
}
