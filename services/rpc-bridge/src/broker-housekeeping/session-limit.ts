import { maxLoginMs } from "@devmesh/contracts/keys";
import { readSession, readSessions, type SessionRecord } from "@devmesh/device-broker/persistent-sessions";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { deviceOfSession, isDeviceId } from "../device-topics.ts";
import type { BridgeMetrics } from "../metrics.ts";
import type { EndSessions } from "./wipe-device.ts";

/** What {@link limitKeptSessions} needs. */
export interface KeptSessionLimitOptions {
  /** Connection to account DEVICES. */
  readonly bus: Bus;
  /** Client ids that the device is connected with now. */
  readonly connectedClientIds: (deviceId: string) => Promise<readonly string[]>;
  readonly endSessions: EndSessions;
  /** How long a session is kept at least while its client is away, in hours. */
  readonly keptHours: number;
  readonly metrics: Pick<BridgeMetrics, "sessionsEnded">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Kept sessions that a device may have; each holds up to 16 consumers in the memory of nats-server. */
const maxKeptSessions = 10;

/** How often new and changed records are read, in milliseconds. */
const lookEveryMs = 5_000;

/** How often all records are read, in milliseconds: a restored stream may count from lower sequences. */
const fullLookEveryMs = 3_600_000;

/** Devices with expired sessions that are handled in one look, so that devices with too many do not wait long. */
const maxExpiringDevices = 20;

/** Sessions that are ended side by side. */
const endedAtOnce = 8;

/**
 * Ends kept sessions beyond {@link maxKeptSessions} of a device and those whose client has been away for too long.
 * Resolves when `signal` aborts.
 */
export async function limitKeptSessions(options: KeptSessionLimitOptions): Promise<void> {
  const { clock, log, signal } = options;
  const look = createSessionCheck(options);
  while (!signal.aborted) {
    try {
      await look();
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, "kept MQTT sessions could not be read");
    }
    await clock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}

/** One look at all kept sessions; it rejects when the broker cannot be asked for them. */
export function createSessionCheck(options: KeptSessionLimitOptions): () => Promise<void> {
  const { bus, connectedClientIds, endSessions, keptHours, metrics, clock, log, signal } = options;
  const expiryMs = maxLoginMs + keptHours * 3_600_000;
  const kept = new Map<string, SessionRecord>();
  let nextSequence = 1;
  let fullLookAt = 0;

  async function readChanges(): Promise<void> {
    if (clock.monotonicMs() >= fullLookAt) {
      kept.clear();
      nextSequence = 1;
      fullLookAt = clock.monotonicMs() + fullLookEveryMs;
    }
    for await (const record of readSessions(bus, nextSequence, signal)) {
      nextSequence = record.sequence + 1;
      note(record.clientId, record);
    }
  }

  function note(clientId: string, record: SessionRecord | null): void {
    if (record === null || record.clean) kept.delete(clientId);
    else kept.set(clientId, record);
  }

  // A record is written at each login, and no login lasts longer than `maxLoginMs`.
  const isExpired = ({ savedAt }: SessionRecord) => clock.now().getTime() - savedAt.getTime() > expiryMs;

  async function limit(deviceId: string, clientIds: readonly string[]): Promise<void> {
    // Before the records: a client that comes back in between has a new one.
    const connected = new Set(await connectedClientIds(deviceId));
    for (const clientId of clientIds) {
      signal.throwIfAborted();
      const known = kept.get(clientId);
      if (known !== undefined) note(clientId, await readSession(bus, known.subject));
    }
    const stored = clientIds.flatMap((clientId) => kept.get(clientId) ?? []);
    const isConnected = ({ clientId }: SessionRecord) => connected.has(clientId);
    const expired = stored.filter((record) => isExpired(record) && !isConnected(record));
    const rest = stored
      .filter((record) => !expired.includes(record))
      .sort((a, b) => Number(isConnected(a)) - Number(isConnected(b)) || a.sequence - b.sequence);
    await end(deviceId, expired, "expired");
    await end(deviceId, rest.slice(0, Math.max(0, rest.length - maxKeptSessions)), "too_many");
  }

  async function end(deviceId: string, records: readonly SessionRecord[], why: string): Promise<void> {
    let ended = 0;
    const endOne = async ({ clientId }: SessionRecord) => {
      try {
        await endSessions(deviceId, [clientId], signal);
        kept.delete(clientId);
        ended++;
      } catch (error) {
        log.warn({ err: error, device_id: deviceId, client_id: clientId }, "a kept session was not ended");
      }
    };
    for (let at = 0; at < records.length; at += endedAtOnce) {
      signal.throwIfAborted();
      await Promise.all(records.slice(at, at + endedAtOnce).map(endOne));
    }
    if (ended === 0) return;
    metrics.sessionsEnded.inc({ why }, ended);
    log.warn({ device_id: deviceId, sessions: ended, why }, "kept sessions of a device were ended");
  }

  return async () => {
    await readChanges();
    const byDevice = new Map<string, SessionRecord[]>();
    for (const record of kept.values()) {
      const deviceId = deviceOfSession(record);
      const records = byDevice.get(deviceId);
      if (records !== undefined) records.push(record);
      // The bridge's own client ids are no device's.
      else if (isDeviceId(deviceId)) byDevice.set(deviceId, [record]);
    }
    const devices = [...byDevice];
    const crowded = devices.filter(([, records]) => records.length > maxKeptSessions);
    const expiring = devices.filter(
      ([, records]) => records.length <= maxKeptSessions && records.some(isExpired),
    );
    for (const [deviceId, records] of [...crowded, ...expiring.slice(0, maxExpiringDevices)]) {
      try {
        await limit(
          deviceId,
          records.map(({ clientId }) => clientId),
        );
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ err: error, device_id: deviceId }, "kept sessions of a device could not be checked");
      }
    }
  };
}
