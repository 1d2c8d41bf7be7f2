import { sum } from "./functions.ts";
import type { SimulatedKind } from "./kind.ts";
import { approach, between, measured, rounded, stopwatch } from "./motion.ts";

/** An electricity meter: what is switched on changes its power, which its energy sums up. */
export const meter: SimulatedKind = {
  firmware: ["1.12.0", "1.11.3", "1.7.2"],
  names: ["Main meter", "Heat pump meter", "Workshop meter", "Charger meter"],
  units: { "meter#/power": "W", "meter#/voltage": "V", "meter#/current": "A", "energy#/imported": "kWh" },
  make() {
    const elapsed = stopwatch();
    const base = between(120, 380);
    let load = 0;
    let power = base;
    let energy = between(800, 42_000);

    function advance() {
      const ms = Math.min(elapsed(), 60_000);
      if (Math.random() < ms / 45_000) load = Math.random() < 0.4 ? 0 : between(200, 3_200);
      power = approach(power, base + load, ms, 4_000);
      energy += (power * ms) / 3_600_000_000;
    }

    return {
      app: "meter",
      reported: { app: { tariff: "day", phases: 1 } },
      functions: {
        "Meter.Read": () => {
          advance();
          return { power: Math.round(power), imported: rounded(energy, 3) };
        },
        sum,
      },
      telemetry: [
        {
          topic: "meter",
          everyMs: 5_000,
          read() {
            advance();
            const watts = measured(power, power / 100);
            const volts = measured(231 - watts / 900, 0.6);
            return { power: Math.round(watts), voltage: rounded(volts), current: rounded(watts / volts, 2) };
          },
        },
        { topic: "energy", everyMs: 60_000, read: () => ({ imported: rounded(energy, 3) }) },
      ],
    };
  },
};
