import { setTimeout as sleep } from "node:timers/promises";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import type { DeviceFunction, DeviceModel, SimulatedDevice } from "../simulated-device.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { Totals } from "./totals.ts";

/** One call of this many is answered badly. */
const badAnswerOneIn = 3;
/** Delay of a late answer, in milliseconds: before most callers give up, or after. */
const lateMs = { from: 1_000, to: 20_000 } as const;
/** Time between two faults of one device, in milliseconds. */
const pauseMs = { from: 2_000, to: 20_000 } as const;

/** The model with functions that are sometimes answered late, wrongly or never. */
export function withBadAnswers(model: DeviceModel, random: SeededRandom, totals: Totals): DeviceModel {
  const flaky =
    (run: DeviceFunction): DeviceFunction =>
    async (params) => {
      if (!random.oneIn(badAnswerOneIn)) return await run(params);
      totals.badAnswers++;
      switch (random.pick(["late", "wrong", "never"] as const)) {
        case "late":
          await sleep(random.between(lateMs.from, lateMs.to), undefined, { ref: false });
          return await run(params);
        case "wrong":
          return { unexpected: random.bytes(8).toString("hex") };
        case "never":
          return await new Promise<never>(() => {});
      }
    };
  const functions = Object.entries(model.functions).map(([name, run]) => [name, flaky(run)]);
  return { ...model, functions: Object.fromEntries(functions) };
}

type Disturbed = Pick<SimulatedDevice, "id" | "connected" | "drop" | "send">;

/** Drops the device's connection or sends garbage at random times, until the result is called. */
export function disturb(device: Disturbed, random: SeededRandom, totals: Totals): () => void {
  let timer: NodeJS.Timeout;
  const schedule = () => {
    timer = setTimeout(
      () => {
        strike();
        schedule();
      },
      random.between(pauseMs.from, pauseMs.to),
    );
  };
  const strike = () => {
    if (random.oneIn(2)) {
      if (device.connected) totals.drops++;
      device.drop();
    } else {
      totals.garbage++;
      const { id } = device;
      const topics = [
        deviceTopics.shadowUpdate(id),
        deviceTopics.replyWithoutSource(id),
        deviceTopics.event(id, "noise"),
        deviceTopics.record(id, "noise"),
      ] as const;
      device.send(random.pick(topics), random.bytes(Math.floor(random.between(1, 200))));
    }
  };
  schedule();
  return () => clearTimeout(timer);
}
