import { setTimeout as sleep } from "node:timers/promises";
import type { MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";
import { messageOf } from "@devmesh/supervisor/process/errors";
import { enrolDevice } from "../device-enrolment.ts";
import { behaviourInMix } from "../firmware/update-behaviour.ts";
import { modelOf } from "../models/device-models.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../simulated-device.ts";
import { disturb, withBadAnswers } from "./faults.ts";
import { fleetDevice, fleetDeviceId } from "./fleet-devices.ts";
import { followRefusals, type RefusalLog } from "./refusals.ts";
import { seededRandom } from "./seeded-random.ts";
import { counted, noTotals, type Totals } from "./totals.ts";

/** Devices that join at the same time, and the least time for each, in milliseconds: 40 a second at most. */
const maxJoining = 4;
const joinMs = 100;
/** Attempts of a device to join, and the pause between them, in milliseconds. */
const maxTries = 5;
const retryMs = 1_000;

/** What a fleet is made of. */
export interface FleetOptions {
  readonly prefix: string;
  readonly devices: number;
  /** Whether some take new firmware slowly, with a drop, or not at all. */
  readonly mixedUpdates?: boolean;
  /** Seed of all faults; null for none. */
  readonly faultSeed: number | null;
}

/** Devices that run until they are stopped. */
export interface Fleet {
  readonly totals: Readonly<Totals>;
  readonly refusals: RefusalLog["counts"];
  /** Devices that are connected now. */
  connected(): number;
  /** Resolves when all have joined or the fleet is stopped; rejects when one cannot join. */
  readonly joined: Promise<void>;
  stop(): Promise<void>;
}

/** Creates missing devices over the REST API, and connects all. */
export function startFleet(mesh: MeshAccess, options: FleetOptions): Fleet {
  const { prefix, devices: wanted, mixedUpdates = false, faultSeed } = options;
  const totals = { ...noTotals };
  const running: SimulatedDevice[] = [];
  const calm: (() => void)[] = [];
  const stopping = new AbortController();
  const { signal } = stopping;
  const refusals = followRefusals(mesh, prefix, signal);
  let next = 1;

  async function start(index: number): Promise<void> {
    const id = fleetDeviceId(prefix, index);
    const { kind, firmware, name, tags } = fleetDevice(prefix, index);
    const token = await enrolDevice(mesh, { id, name, tags });
    const random = faultSeed === null ? null : seededRandom(faultSeed, index);
    const update = mixedUpdates ? behaviourInMix(index) : {};
    const model = counted({ ...modelOf(kind, firmware), update }, totals);
    const device = await startSimulatedDevice(
      { url: mesh.mqttUrl, tlsCert: mesh.mqttTlsCert, id, token },
      random === null ? model : withBadAnswers(model, random, totals),
    );
    running.push(device);
    if (random !== null) calm.push(disturb(device, random, totals));
  }

  async function join(index: number): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await start(index);
      } catch (cause) {
        if (signal.aborted) return;
        if (tries === maxTries) {
          const id = fleetDeviceId(prefix, index);
          const why = refusals.lastOf(id);
          throw new Error(`${id} could not join: ${messageOf(cause)}${why ? ` (${why})` : ""}`, { cause });
        }
        await pause(retryMs, signal);
      }
    }
  }

  async function joinInTurn(): Promise<void> {
    while (next <= wanted && !signal.aborted) await Promise.all([join(next++), pause(joinMs, signal)]);
  }

  const joining = Promise.allSettled(
    Array.from({ length: maxJoining }, async () => {
      try {
        await joinInTurn();
      } catch (error) {
        stopping.abort(error);
        throw error;
      }
    }),
  );
  return {
    totals,
    refusals: refusals.counts,
    connected: () => running.filter((device) => device.connected).length,
    joined: joining.then((ends) => {
      for (const end of ends) if (end.status === "rejected") throw end.reason;
    }),
    async stop() {
      stopping.abort();
      await joining;
      for (const end of calm) end();
      await Promise.all(running.map((device) => device.stop()));
    },
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
