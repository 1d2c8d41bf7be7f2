import { z } from "zod";
import { checked, sum } from "./functions.ts";
import type { SimulatedKind } from "./kind.ts";
import { approach, between, measured, rounded, stopwatch } from "./motion.ts";

const StartParams = z
  .object({ seconds: z.number().positive().max(3_600).default(30) })
  .default({ seconds: 30 });
const Settings = z.object({ app: z.object({ target_bar: z.number().min(0.5).max(10) }) });

/** Pressure above which it rests, as a part of the target, and below which it starts. */
const stopsAt = 0.98;
const startsAt = 0.6;

/** A pump that keeps a pressure: taps let it fall, and it runs until it is reached. */
export const pump: SimulatedKind = {
  firmware: ["2.0.1", "1.9.8", "1.8.0"],
  names: ["Cellar pump", "Well pump", "Cistern pump", "Booster pump", "Drain pump"],
  units: {
    "pump#/flow": "l/min",
    "pump#/pressure": "bar",
    "pump#/motor": "°C",
    "pump#/power": "W",
    "counter#/water": "m³",
    "counter#/running": "h",
  },
  make() {
    const elapsed = stopwatch();
    const nominalFlow = between(18, 32);
    let target = 3;
    let pressure = between(1.5, 3);
    let running = false;
    let flow = 0;
    let motor = between(19, 24);
    let water = between(40, 900);
    let hours = between(100, 4_000);
    let forcedUntil = 0;

    function advance() {
      const ms = Math.min(elapsed(), 60_000);
      const now = performance.now();
      if (now < forcedUntil) running = true;
      else if (pressure >= target * stopsAt) running = false;
      else if (pressure <= target * startsAt) running = true;
      flow = approach(flow, running ? nominalFlow : 0, ms, 2_500);
      pressure = approach(pressure, running ? target * 1.08 : 0.4, ms, running ? 9_000 : 55_000);
      motor = approach(motor, running ? 68 : 21, ms, 150_000);
      water += (flow * ms) / 60_000_000;
      if (running) hours += ms / 3_600_000;
    }

    return {
      app: "pump",
      reported: { app: { mode: "auto", target_bar: target } },
      functions: {
        "Pump.Start": (params) => {
          const { seconds } = checked(StartParams, params);
          forcedUntil = performance.now() + seconds * 1_000;
          return { running: true, seconds };
        },
        "Pump.Stop": () => {
          forcedUntil = 0;
          running = false;
          return { running: false };
        },
        "Pump.GetState": () => {
          advance();
          return { running, pressure: rounded(pressure, 2), flow: rounded(flow) };
        },
        sum,
      },
      telemetry: [
        {
          topic: "pump",
          everyMs: 5_000,
          read() {
            advance();
            return {
              flow: rounded(Math.max(0, measured(flow, flow / 60))),
              pressure: rounded(measured(pressure, 0.02), 2),
              motor: rounded(measured(motor, 0.2)),
              power: Math.round(running ? measured(90 + 160 * pressure, 8) : measured(3, 0.5)),
            };
          },
        },
        {
          topic: "counter",
          everyMs: 60_000,
          read: () => ({ water: rounded(water, 3), running: rounded(hours, 2) }),
        },
      ],
      onDesired(desired) {
        const settings = Settings.safeParse(desired);
        if (settings.success) target = settings.data.app.target_bar;
      },
    };
  },
};
