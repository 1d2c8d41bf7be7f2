import type { deviceEvents } from "@devmesh/contracts/devices";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import {
  type Diagnosis,
  type DiagnosisReport,
  diagnosisFrames,
  type UnknownDevice,
} from "@devmesh/contracts/model/diagnostics";
import type { DeviceConnectionEvent } from "@devmesh/device-broker/connections";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import type { z } from "zod";
import type { Background } from "../background.ts";
import type { DeviceEventPublisher } from "../device-events.ts";
import { DiagnosisHistory, type DiagnosisListing, type Problem } from "./diagnosis-history.ts";

interface DiagnosticsOptions {
  readonly events: Pick<DeviceEventPublisher, "diagnosed">;
  readonly background: Background;
  readonly clock: Clock;
}

const callTimeoutMs = 5_000;

/** Frames of one device; all unknown ids together have one bucket. */
const framesOfOne = { size: 10, refill: 6, everyMs: 60_000, maxBuckets: 10_000 } as const;
const framesOfUnknown = { size: 60, refill: 60, everyMs: 60_000, maxBuckets: 1 } as const;
const framesOfAll = { size: 200, refill: 20, maxBuckets: 1 } as const;

/** Members of a single report that this service makes about a device it knows. */
const ofRegistered = {
  address: null,
  client_id: null,
  topic: null,
  detail: null,
  count: 1,
  registered: true,
} as const;

type DeviceThrottled = z.output<(typeof deviceEvents)["events"]["throttled"]["schema"]>;

/** Why devices do not connect, and what else went wrong between them and the mesh (api.md, Diagnostics). */
export type Diagnostics = ReturnType<typeof createDiagnostics>;

/** Keeps the history in memory, and publishes a bounded share of it. */
export function createDiagnostics({ events, background, clock }: DiagnosticsOptions) {
  const history = new DiagnosisHistory();
  const ofOne = new TokenBuckets(framesOfOne);
  const ofUnknown = new TokenBuckets(framesOfUnknown);
  const ofAll = new TokenBuckets(framesOfAll);

  function record(report: DiagnosisReport): void {
    const diagnosis = history.add(report);
    const name = diagnosisFrames.find((frame) => frame === diagnosis?.name);
    if (
      diagnosis === null ||
      name === undefined ||
      !DeviceId.safeParse(report.id).success ||
      !mayPublish(report)
    )
      return;
    background.run("publishing a diagnosis", async () => {
      using call = createCallContext({ timeoutMs: callTimeoutMs, signal: background.signal, clock });
      await events.diagnosed(report.id, { ...diagnosis, name }, report.timestamp, call);
    });
  }

  /** Takes a token for the frame, if there is one in each bucket. */
  function mayPublish({ id, registered }: DiagnosisReport): boolean {
    const now = clock.monotonicMs();
    const isAllowed = (registered ?? history.has(id)) ? ofOne.tryTake(id, now) : ofUnknown.tryTake("", now);
    return isAllowed && ofAll.tryTake("", now);
  }

  function recordConnection(
    name: Diagnosis["name"],
    { deviceId, mqttClientId, address, reason, at }: DeviceConnectionEvent,
  ): void {
    const connection = { address, client_id: mqttClientId };
    record({ ...ofRegistered, ...connection, id: deviceId, name, reason, timestamp: at.toISOString() });
  }

  return {
    /** Records what other services reported. */
    record(reports: readonly DiagnosisReport[]): void {
      for (const report of reports) record(report);
    },

    connected: (connection: DeviceConnectionEvent): void => recordConnection("connected", connection),

    disconnected(connection: DeviceConnectionEvent): void {
      const takenOver = connection.reason === "duplicate_client_id";
      recordConnection(takenOver ? "session_taken_over" : "disconnected", connection);
    },

    /** The device sent too much and is kept out of the broker, which the event `throttled` shows in the stream. */
    throttled({ id, timestamp, why }: DeviceThrottled): void {
      history.add({ ...ofRegistered, id, name: "allowance_exceeded", reason: why, timestamp });
    },

    ofDevice: (id: string, createdAt: number): Diagnosis[] => history.ofDevice(id, createdAt),
    ofUnknown: (): UnknownDevice[] => history.ofUnknown(),
    problemsOf: (id: string, createdAt: number): Problem[] =>
      history.problemsOf(id, createdAt, clock.now().getTime()),
    devicesWithProblem: (word: string): string[] => history.devicesWithProblem(word, clock.now().getTime()),
    list: (listing: DiagnosisListing) => history.list(listing),
  };
}
