import { z } from "zod";
import { sum } from "./functions.ts";
import type { SimulatedKind } from "./kind.ts";
import { approach, between, measured, rounded, stopwatch } from "./motion.ts";

const Settings = z.object({ app: z.object({ target: z.number().min(-30).max(15) }) });

/** Degrees around the target within which the compressor neither starts nor stops. */
const hysteresis = 0.8;

/** A fridge: a compressor cools it in cycles, and an opened door warms it. */
export const fridge: SimulatedKind = {
  firmware: ["3.2.0", "3.1.4", "2.9.9"],
  names: ["Kitchen fridge", "Lab fridge", "Bar fridge", "Cold room", "Vaccine fridge"],
  units: { "fridge#/temperature": "°C", "fridge#/power": "W", "fridge#/humidity": "%" },
  make() {
    const elapsed = stopwatch();
    let target = 4;
    let temperature = between(3, 6);
    let cooling = Math.random() < 0.5;
    let openUntil = 0;
    let openings = 0;

    function advance() {
      const ms = Math.min(elapsed(), 60_000);
      const now = performance.now();
      if (Math.random() < ms / 240_000) {
        openUntil = now + between(5_000, 25_000);
        openings++;
      }
      if (temperature > target + hysteresis) cooling = true;
      if (temperature < target - hysteresis) cooling = false;
      const outside = now < openUntil ? 14 : 9;
      temperature = approach(temperature, cooling ? target - 4 : outside, ms, cooling ? 100_000 : 130_000);
    }

    return {
      app: "fridge",
      reported: { app: { target, eco: true } },
      functions: {
        "Fridge.GetState": () => {
          advance();
          return { cooling, door_open: performance.now() < openUntil, openings };
        },
        sum,
      },
      telemetry: [
        {
          topic: "fridge",
          everyMs: 10_000,
          read() {
            advance();
            return {
              temperature: rounded(measured(temperature, 0.04), 2),
              humidity: Math.round(measured(performance.now() < openUntil ? 68 : 52, 1.5)),
              power: rounded(cooling ? measured(84, 2) : measured(1.6, 0.1)),
              door_open: performance.now() < openUntil,
            };
          },
        },
      ],
      onDesired(desired) {
        const settings = Settings.safeParse(desired);
        if (settings.success) target = settings.data.app.target;
      },
    };
  },
};
