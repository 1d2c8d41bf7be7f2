import { z } from "zod";
import { checked, sum } from "./functions.ts";
import type { SimulatedKind } from "./kind.ts";
import { measured, rounded } from "./motion.ts";

const LedParams = z.object({ on: z.boolean() });
const Settings = z.object({
  app: z.object({ on: z.boolean(), brightness: z.number().min(0).max(100) }).partial(),
});

/** A lamp that is switched and dimmed. */
export const lamp: SimulatedKind = {
  firmware: ["3.1.0", "3.0.7", "2.4.1"],
  names: ["Entrance lamp", "Yard lamp", "Hall lamp", "Stairs lamp", "Gate lamp"],
  units: { "lamp#/power": "W", "lamp#/brightness": "%", "lamp#/temperature": "°C" },
  make() {
    const state = { on: Math.random() < 0.7, brightness: 50 };
    return {
      app: "lamp",
      reported: { app: { ...state } },
      functions: {
        "Led.Set": (params) => {
          state.on = checked(LedParams, params).on;
          return { on: state.on };
        },
        "Led.Get": () => ({ on: state.on }),
        sum,
      },
      telemetry: [
        {
          topic: "lamp",
          everyMs: 10_000,
          read: () => ({
            on: state.on,
            brightness: state.on ? state.brightness : 0,
            power: rounded(measured(state.on ? 1.2 + 0.11 * state.brightness : 0.4, 0.05)),
            temperature: rounded(measured(state.on ? 24 + state.brightness / 5 : 22, 0.3)),
          }),
        },
      ],
      onDesired(desired) {
        const settings = Settings.safeParse(desired);
        if (settings.success) Object.assign(state, settings.data.app);
      },
    };
  },
};
