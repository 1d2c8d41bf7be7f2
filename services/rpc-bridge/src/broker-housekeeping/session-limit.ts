import { maxLoginMs } from "@devmesh/contracts/keys";
import { mqttBounds } from "@devmesh/contracts/mqtt";
import type { ReportDiagnosis } from "@devmesh/device-broker/diagnosis-reporter";
import { readSession, readSessions, type SessionRecord } from "@devmesh/device-broker/persistent-sessions";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { repeat } from "@devmesh/service-kit/retry";
import { deviceOfSession, isDeviceId } from "../device-topics.ts";
import type { BridgeMetrics } from "../metrics.ts";
import type { EndSessions } from "./wipe-device.ts";

interface SessionLimitOptions {
  /** Connection to account DEVICES. */
  readonly bus: Bus;
  /** Client ids that the device is connected with now. */
  readonly connectedClientIds: (deviceId: string) => Promise<readonly string[]>;
  readonly endSessions: EndSessions;
  /** Least lifetime of a session without a client, in hours. */
  readonly keptHours: number;
  readonly metrics: Pick<BridgeMetrics, "sessionsEnded">;
  readonly report: ReportDiagnosis;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Each has up to 16 consumers in the memory of nats-server. */
const maxPersistentSessions = mqttBounds.persistentSessions;

/** Interval of checks, which read new and changed records, in milliseconds. */
const checkEveryMs = 5_000;

/** Interval of reading all records, in milliseconds: a restored stream may have lower sequences. */
const fullReadEveryMs = 3_600_000;

/** Devices with expired sessions handled in one check, so that devices with too many do not wait long. */
const maxExpiringDevices = 20;

/** Sessions ended in parallel. */
const endBatchSize = 8;

/**
 * Ends persistent sessions beyond {@link maxPersistentSessions} of a device and expired ones. Resolves when `signal`
 * aborts.
 */
export async function limitPersistentSessions(options: SessionLimitOptions): Promise<void> {
  const { clock, log, signal } = options;
  await repeat(createSessionCheck(options), {
    everyMs: checkEveryMs,
    onFailure: (error) => log.warn({ err: error }, "persistent MQTT sessions could not be read"),
    clock,
    signal,
  });
}

/** Checks all sessions once; rejects when the broker cannot be asked for them. */
export function createSessionCheck(options: SessionLimitOptions): () => Promise<void> {
  const { bus, connectedClientIds, endSessions, keptHours, metrics, report, clock, log, signal } = options;
  const expiryMs = maxLoginMs + keptHours * 3_600_000;
  const sessions = new Map<string, SessionRecord>();
  let nextSequence = 1;
  let fullReadAt = 0;

  async function readChanges(): Promise<void> {
    if (clock.monotonicMs() >= fullReadAt) {
      sessions.clear();
      nextSequence = 1;
      fullReadAt = clock.monotonicMs() + fullReadEveryMs;
    }
    for await (const record of readSessions(bus, nextSequence, signal)) {
      nextSequence = record.sequence + 1;
      note(record.clientId, record);
      reportIfFull(record);
    }
  }

  function note(clientId: string, record: SessionRecord | null): void {
    if (record === null || record.clean) sessions.delete(clientId);
    else sessions.set(clientId, record);
  }

  /** The broker does not publish that it refuses a subscription, but the session of a refused one is full. */
  function reportIfFull(record: SessionRecord): void {
    const deviceId = deviceOfSession(record);
    if (record.acknowledgedSubscriptions < mqttBounds.acknowledgedSubscriptions || !isDeviceId(deviceId))
      return;
    const reason = "acknowledged_subscriptions";
    report({ id: deviceId, name: "subscription_limit", reason, client_id: record.clientId });
  }

  // A record is written at each login, and no login lasts longer than `maxLoginMs`.
  const isExpired = ({ savedAt }: SessionRecord) => clock.now().getTime() - savedAt.getTime() > expiryMs;

  async function limit(deviceId: string, clientIds: readonly string[]): Promise<void> {
    // Before the records: a client that returns in between writes a new one.
    const connected = new Set(await connectedClientIds(deviceId));
    for (const clientId of clientIds) {
      signal.throwIfAborted();
      const known = sessions.get(clientId);
      if (known !== undefined) note(clientId, await readSession(bus, known.subject));
    }
    const own = clientIds.flatMap((clientId) => sessions.get(clientId) ?? []);
    const isConnected = ({ clientId }: SessionRecord) => connected.has(clientId);
    const expired = own.filter((record) => isExpired(record) && !isConnected(record));
    const rest = own
      .filter((record) => !expired.includes(record))
      .sort((a, b) => Number(isConnected(a)) - Number(isConnected(b)) || a.sequence - b.sequence);
    await end(deviceId, expired, "expired");
    await end(deviceId, rest.slice(0, Math.max(0, rest.length - maxPersistentSessions)), "too_many");
  }

  async function end(deviceId: string, records: readonly SessionRecord[], why: string): Promise<void> {
    let ended = 0;
    const endOne = async ({ clientId }: SessionRecord) => {
      try {
        await endSessions(deviceId, [clientId], signal);
        sessions.delete(clientId);
        ended++;
      } catch (error) {
        log.warn(
          { err: error, device_id: deviceId, client_id: clientId },
          "a persistent session could not be ended",
        );
      }
    };
    for (let at = 0; at < records.length; at += endBatchSize) {
      signal.throwIfAborted();
      await Promise.all(records.slice(at, at + endBatchSize).map(endOne));
    }
    if (ended === 0) return;
    metrics.sessionsEnded.inc({ why }, ended);
    log.warn({ device_id: deviceId, sessions: ended, why }, "ended persistent sessions of a device");
  }

  return async () => {
    await readChanges();
    const byDevice = Map.groupBy(sessions.values(), deviceOfSession);
    // Skips the bridge's own sessions.
    const devices = [...byDevice].filter(([deviceId]) => isDeviceId(deviceId));
    const crowded = devices.filter(([, records]) => records.length > maxPersistentSessions);
    const expiring = devices.filter(
      ([, records]) => records.length <= maxPersistentSessions && records.some(isExpired),
    );
    for (const [deviceId, records] of [...crowded, ...expiring.slice(0, maxExpiringDevices)]) {
      try {
        await limit(
          deviceId,
          records.map(({ clientId }) => clientId),
        );
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ err: error, device_id: deviceId }, "persistent sessions of a device could not be checked");
      }
    }
  };
}
