import { sum } from "./functions.ts";
import type { SimulatedKind } from "./kind.ts";
import { approach, between, measured, rounded, stopwatch } from "./motion.ts";

/** A weather station: a day of twenty minutes, with gusts. */
export const weather: SimulatedKind = {
  firmware: ["1.4.2", "1.4.0", "1.3.0"],
  names: ["Roof weather", "Yard weather", "Greenhouse", "Field weather"],
  units: {
    "weather#/temperature": "°C",
    "weather#/humidity": "%",
    "weather#/wind": "m/s",
    "weather#/pressure": "hPa",
    "battery#/voltage": "V",
  },
  make() {
    const elapsed = stopwatch();
    const mean = between(11, 17);
    const shift = between(0, 2 * Math.PI);
    const battery = between(3.6, 4.1);
    let gust = 3;
    let wind = 3;
    const temperature = () => mean + 5 * Math.sin((Date.now() / 1_200_000) * 2 * Math.PI + shift);

    return {
      app: "weather station",
      reported: { app: { interval: 10, unit: "celsius" } },
      functions: { "Temp.Read": () => ({ celsius: rounded(measured(temperature(), 0.1)) }), sum },
      telemetry: [
        {
          topic: "weather",
          everyMs: 10_000,
          read() {
            const ms = Math.min(elapsed(), 60_000);
            if (Math.random() < ms / 30_000) gust = between(0.5, 9);
            wind = approach(wind, gust, ms, 12_000);
            const now = temperature();
            return {
              temperature: rounded(measured(now, 0.1)),
              humidity: Math.round(measured(62 - 3 * (now - mean), 1)),
              wind: rounded(Math.max(0, measured(wind, 0.4))),
              pressure: rounded(1_013 + 4 * Math.sin(Date.now() / 4_000_000 + shift)),
            };
          },
        },
        { topic: "battery", everyMs: 60_000, read: () => ({ voltage: rounded(measured(battery, 0.01), 2) }) },
      ],
    };
  },
};
